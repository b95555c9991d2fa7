"""The command `runvitals neuron`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.cli import main


def test_smallest_configuration_for_selected_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["neuron", "config", "--metrics", "neuroncore_utilization,EccMemUncorrected", "--period", "10s"])
        == 0
    )
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "period": "10s",
        "neuron_runtimes": [{"tag_filter": ".*", "metrics": [{"type": "neuroncore_counters"}]}],
        "system_metrics": [{"type": "neuron_hw_counters"}],
    }
    assert "--include 'neuroncore_utilization' --include 'EccMemUncorrected'" in printed.err
    file = tmp_path / "monitor.conf"
    file.write_text(printed.out)
    assert main(["neuron", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: valid neuron-monitor configuration\n"


def test_no_advice_for_whole_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neuron", "config", "--metrics", "memory_used"]) == 0
    assert capsys.readouterr().err == ""


def test_unknown_metric_error_lists_all_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neuron", "config", "--metrics", "power"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(
        "runvitals: unknown neuron-monitor metric 'power'; expected one of the groups neuroncore_counters"
    )


def test_problems_are_reported_with_location_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "monitor.conf"
    file.write_text('{\n "neuron_runtimes": [\n  {"metrics": [{"type": "memory_used"}]}\n ]\n}')
    assert main(["neuron", "check", str(file)]) == 1
    assert capsys.readouterr().out == (
        f"{file}:3: neuron_runtimes[0]: missing tag_filter, which some versions require; "
        '"tag_filter": ".*" matches all processes\n'
    )


def test_warnings_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "monitor.conf"
    file.write_text('{"period": "100ms", "system_metrics": [{"type": "memory_info"}]}')
    assert main(["neuron", "check", str(file)]) == 0
    assert "warning: " in capsys.readouterr().out


def test_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neuron", "check", "/nonexistent"]) == 1
    assert "/nonexistent" in capsys.readouterr().err
