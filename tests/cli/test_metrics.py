"""The command `runvitals metrics`, and the page that it generates."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.reference import table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def test_table_lists_every_key_by_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Process", lines[1]]
    keys = [line.strip().split("  ")[0] for line in lines if line.startswith("  ")]
    assert keys == [row.key for row in DEFINITIONS.metrics]


def test_pattern_filters_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "swap*"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Memory",
        "  swap.used_percent  %      gauge    Used swap space.",
        "  swap.used          bytes  gauge    Used swap space.",
    ]


def test_lines_fit_narrow_terminals() -> None:
    rows = {"Memory": tuple(DEFINITIONS.search("swap*"))}
    assert list(table(rows, width=42))[1] == "  swap.used_percent  %      gauge    Used…"


def test_pattern_without_matches_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "qubits"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "runvitals: no metric's key, name or description matches 'qubits'\n"


def test_json_of_a_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--json", "network.sent"]) == 0
    (metric,) = json.loads(capsys.readouterr().out)
    assert metric["key"] == "network.sent"
    assert (metric["unit"], metric["kind"], metric["scope"], metric["merge"]) == (
        "bytes",
        "counter",
        "host",
        "last",
    )
    assert metric["mlflow"] == {"name": "network_transmit_megabytes", "factor": 1e-6}
    assert metric["prometheus"] == {"name": "runvitals_network_sent_bytes_total", "factor": 1.0}
    assert metric["opentelemetry"] == {"name": "runvitals.network.sent", "unit": "By", "factor": 1.0}
    assert "aliases" not in metric
    assert "of" not in metric


def test_json_of_a_rate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--json", "network.sentMBps"]) == 0
    (metric,) = json.loads(capsys.readouterr().out)
    assert metric["of"] == {"key": "network.sent", "factor": 2.0**-20}
    assert "prometheus" not in metric


def test_json_of_all_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--json"]) == 0
    assert [metric["key"] for metric in json.loads(capsys.readouterr().out)] == [
        row.key for row in DEFINITIONS.metrics
    ]


def test_page_in_docs_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--markdown"]) == 0
    fresh = PAGE.read_text("utf-8") == capsys.readouterr().out
    assert fresh, (
        "docs/reference/metrics.md is stale: runvitals metrics --markdown > docs/reference/metrics.md"
    )


def test_markdown_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--markdown", "energy.{domain}"]) == 0
    page = capsys.readouterr().out
    assert "intel-rapl:\\*" in page
    assert main(["metrics", "--markdown", "proc.cpu.threads"]) == 0
    assert "/proc/&lt;pid>/stat" in capsys.readouterr().out


def test_streams_that_the_caller_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, None)
    assert main(["metrics"]) == 0
    for stream in (sys.stdin, sys.stdout):
        stream.close()
