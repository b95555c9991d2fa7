"""neuron-monitor as a child: configuration, invalid lines, exit and silence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.collectors.plumbing.tool import StillFailing, ToolFailed
from runvitals.monitoring.collectors.trainium.monitor import (
    LONG_SILENCE_S,
    SILENCE_S,
    NeuronMonitor,
    configuration,
)
from runvitals.relay.destinations.cloudwatch import neuron_config
from tests.monitoring.collectors.trainium import machines, reports
from tests.patience import PATIENCE_S

Start = Callable[..., NeuronMonitor]


@pytest.fixture
def start(programs: Path) -> Iterator[Start]:
    """Starts a neuron-monitor that is a shell script."""
    started: list[NeuronMonitor] = []

    def start_it(script: str, interval_s: float = 1.0, config: str | None = None) -> NeuronMonitor:
        path = machines.install(programs, "neuron-monitor", script)
        started.append(NeuronMonitor(str(path), interval_s, config))
        return started[-1]

    yield start_it
    for monitor in started:
        monitor.close()


def read_reports(monitor: NeuronMonitor, count: int, mono_s: float = 1.0) -> list[dict[str, Any]]:
    """Wait for this many reports."""
    reports: list[dict[str, Any]] = []
    stop_s = time.monotonic() + PATIENCE_S
    while len(reports) < count:
        try:
            reports += monitor.reports(mono_s)
        except StillFailing:  # restarted, and nothing printed yet
            pass
        assert time.monotonic() < stop_s, f"{len(reports)} reports, {monitor.malformed} malformed"
        time.sleep(0.002)
    return reports


def failure(monitor: NeuronMonitor, mono_s: float) -> str:
    stop_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < stop_s:
        try:
            monitor.reports(mono_s)
        except StillFailing:
            pass
        except ToolFailed as failed:
            return str(failed)
        time.sleep(0.002)
    raise AssertionError("no failure")


def test_our_configuration_has_all_groups_of_processes_and_devices() -> None:
    config = configuration(2.5)
    assert config["period"] == "2.5s"
    assert neuron_config.check(json.dumps(config)) == []  # as `runvitals neuron check` does


@pytest.mark.parametrize(("interval_s", "period"), [(0.2, "1s"), (1.0, "1s"), (15.0, "15s")])
def test_our_configuration_is_passed(start: Start, interval_s: float, period: str) -> None:
    line = '{"neuron_runtime_data":[],"neuron_hardware_info":'
    monitor = start(f"echo '{line}'\"$(tr -d '\\n' < $2)\"'}}'; exec sleep 60", interval_s)
    (report,) = read_reports(monitor, 1)
    assert report["hardware"] == {**configuration(1.0), "period": period}


def test_the_users_configuration_is_passed_unchanged(start: Start, tmp_path: Path) -> None:
    monitor = start(f'echo "$@" > {tmp_path}/arguments; echo "{{}}"; exec sleep 60', config="/etc/nm.json")
    read_reports(monitor, 1)
    assert (tmp_path / "arguments").read_text() == "-c /etc/nm.json\n"


def test_invalid_reports_are_counted(start: Start, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(
        b"log: \xff starting\n\n"
        + reports.report(reports.process(5, "5", {0: 1.0}))
        + b'\n{"neuron_runtime_data":[{"pid":\nWARN {"a"} '
        + reports.report()
        + b"\n[1, 2]\n"
        + reports.report()
        + b"\n"
    )
    monitor = start(f"cat {tmp_path}/out; exec sleep 60")
    read = read_reports(monitor, 2)
    assert read[0]["processes"][0]["pid"] == 5
    assert monitor.malformed >= 2
    assert monitor.complaint


def test_a_report_of_450_kilobytes(start: Start, tmp_path: Path) -> None:
    processes = [reports.process(pid, str(pid), {pid: 1.0}, cores=32) for pid in range(32)]
    for process in processes:
        models = [{"name": "x" * 600, "model_id": model, "subgraphs": {}} for model in range(20)]
        process["report"]["memory_used"]["loaded_models"] = models
    line = reports.report(*processes)
    assert len(line) > 450_000
    (tmp_path / "out").write_bytes(line + b"\n" + line + b"\n")
    first, second = read_reports(start(f"cat {tmp_path}/out; exec sleep 60"), 2)
    assert first == second
    assert [process["pid"] for process in first["processes"] if "pid" in process] == list(range(1, 32))


def test_it_is_restarted_after_it_exits(start: Start, programs: Path) -> None:
    script = f"echo x >> {programs}/starts; echo '{{}}'; echo 'no driver' >&2; exit 3"
    monitor = start(script)
    assert "exited with 3: no driver" in failure(monitor, 10.0)
    with pytest.raises(StillFailing, match="no driver"):
        monitor.reports(10.5)
    assert (programs / "starts").read_text() == "x\n"
    read_reports(monitor, 1, mono_s=11.0)  # 1 s later
    failure(monitor, 11.0)
    with pytest.raises(StillFailing, match="no driver"):
        monitor.reports(12.5)
    read_reports(monitor, 1, mono_s=13.0)  # 2 s later
    assert (programs / "starts").read_text() == "x\n" * 3


def test_a_file_that_is_not_a_program(programs: Path) -> None:
    monitor = NeuronMonitor(str(programs / "gone"), 1.0)
    assert "could not be started: No such file" in failure(monitor, 1.0)
    monitor.close()


def test_a_silent_neuron_monitor_is_restarted(start: Start, programs: Path) -> None:
    monitor = start(f"echo x >> {programs}/starts; exec sleep 60")
    monitor.reports(0.0)
    assert monitor.reports(SILENCE_S - 1.0) == []
    assert "printed nothing for 61 s" in failure(monitor, SILENCE_S + 1.0)
    assert monitor.reports(SILENCE_S + 2.0) == []


def test_a_users_configuration_may_have_a_long_period(start: Start) -> None:
    monitor = start("exec sleep 60", config="/etc/nm.json")
    monitor.reports(0.0)
    assert monitor.reports(LONG_SILENCE_S - 1.0) == []
    assert "printed nothing" in failure(monitor, LONG_SILENCE_S + 1.0)
