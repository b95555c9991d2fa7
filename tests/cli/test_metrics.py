"""`runvitals metrics`, and the page that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.metrics import DEFINITIONS
from runvitals.metrics.reference import table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def test_the_table_has_every_key_under_its_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Process", lines[1]]
    keys = [line.strip().split("  ")[0] for line in lines if line.startswith("  ")]
    assert keys == [row.key for row in DEFINITIONS.metrics]


def test_a_pattern_narrows_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "swap*"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Memory",
        "  swap.used_percent  %      gauge    Swap space in use.",
        "  swap.used          bytes  gauge    Swap space in use.",
    ]


def test_a_narrow_terminal_gets_lines_that_fit() -> None:
    rows = {"Memory": tuple(DEFINITIONS.search("swap*"))}
    assert list(table(rows, width=42))[1] == "  swap.used_percent  %      gauge    Swap…"


def test_a_pattern_that_finds_nothing_is_an_error_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "qubits"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "runvitals: no metric's key, name or description matches 'qubits'\n"


def test_json_tells_everything_about_a_metric(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_json_of_a_rate_names_its_counter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--json", "network.sentMBps"]) == 0
    (metric,) = json.loads(capsys.readouterr().out)
    assert metric["of"] == {"key": "network.sent", "factor": 2.0**-20}
    assert "prometheus" not in metric


def test_json_of_all_has_every_metric_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--json"]) == 0
    assert [metric["key"] for metric in json.loads(capsys.readouterr().out)] == [
        row.key for row in DEFINITIONS.metrics
    ]


def test_the_page_in_docs_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--markdown"]) == 0
    fresh = PAGE.read_text("utf-8") == capsys.readouterr().out
    assert fresh, (
        "docs/reference/metrics.md is stale: runvitals metrics --markdown > docs/reference/metrics.md"
    )


def test_markdown_cells_show_signs_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--markdown", "energy.{domain}"]) == 0
    page = capsys.readouterr().out
    assert "intel-rapl:\\*" in page
    assert main(["metrics", "--markdown", "proc.cpu.threads"]) == 0
    assert "/proc/&lt;pid>/stat" in capsys.readouterr().out
