"""The command `runvitals show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.cli import main
from tests.readers.journals.journals import T0, Monitor, Training


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    return tmp_path


def test_text_output(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = Training(data, "brave-otter-1", tags=("x\x1b",))
    training.monitor.event(T0 + 1000, "alert", "warning", "loss is rising\x07")
    training.advance(10)
    training.end("failed", exit_code=3)
    assert main(["show", "brave"]) == 0
    shown = capsys.readouterr().out
    for expected in (
        "state          failed (exit code 3)",
        "out of memory  no",
        "duration       10.0 s",
        r"tags           x\x1b",
        "  lr = 0.001",
        r"warning  alert: loss is rising\x07",
        "absent on node1: energy",
        "disk.readMBps",
    ):
        assert expected in shown
    assert not {"\x1b", "\x07"} & set(shown)


def test_sources_that_do_not_deliver_everything(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = Monitor(data)
    states = {
        "cpu": {"state": "on"},
        "energy": {"state": "on", "reason": "dram: only root may read this"},
        "nvidia": {"state": "failing", "reason": "the driver does not answer"},
        "memory": {"state": "on", "reason": "swap.used: there is none: no swap"},
        "filesystem": {"state": "absent", "reason": "disk./data: no such folder"},
        "amd": {"state": "absent", "reason": "no AMD GPU"},
    }
    monitor.info(T0, sources=states)
    monitor.end(T0 + 1000)
    assert main(["show", "latest"]) == 0
    shown = capsys.readouterr().out
    assert (
        "not measured\n"
        "  energy on node1: partial, dram: only root may read this\n"
        "  nvidia on node1: failing, the driver does not answer\n"
        "  memory on node1: on, swap.used: there is none: no swap\n"
        "  filesystem on node1: absent, disk./data: no such folder\n"
        "  absent on node1: amd (see `runvitals doctor` there)\n"
    ) in shown


def test_the_source_of_a_card_that_is_there_has_its_reason(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor = Monitor(data)
    states = {
        "nvidia": {"state": "absent", "reason": "the library of the NVIDIA driver could not be loaded"},
        "amd": {"state": "absent", "reason": "no AMD GPU"},
        "fridge": {"state": "absent", "reason": "the probe failed: KeyError: 'door'"},
    }
    cards = [{"vendor": "NVIDIA", "address": "0000:01:00.0"}, "hostile", {"vendor": ["hostile"]}]
    monitor.info(T0, sources=states, machine={"accelerators": cards})
    monitor.end(T0 + 1000)
    assert main(["show", "latest"]) == 0
    assert (
        "not measured\n"
        "  nvidia on node1: absent, the library of the NVIDIA driver could not be loaded\n"
        "  fridge on node1: absent, the probe failed: KeyError: 'door'\n"
        "  absent on node1: amd (see `runvitals doctor` there)\n"
    ) in capsys.readouterr().out


def test_the_cgroup_that_sets_a_limit_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = Monitor(data)
    folder = "/sys/fs/cgroup/kubepods.slice"
    limits = {
        "cgroup_memory_limit": {"bytes": 8 << 30, "set_by": folder},
        "cgroup_cpu_limit": {"cpus": 1.5, "set_by": folder},
        "cgroup_memory_high": "hostile",
    }
    monitor.info(T0, machine=limits)
    monitor.end(T0 + 1000)
    assert main(["show", "latest"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"limits 8 GiB of memory, set by {folder}; 1.5 CPUs, set by {folder}" in shown


def test_json_output(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = Monitor(data)
    monitor.sample(T0, {"cpu": 10.0, "disk.in": 0.0})
    monitor.sample(T0 + 1000, {"cpu": 30.0, "disk.in": 5.0})
    monitor.end(T0 + 2000, "crashed", signal=11)
    assert main(["show", "latest", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["signal"], shown["exit_code"], shown["out_of_memory"]) == (
        "crashed",
        11,
        None,
        False,
    )
    cpu, read, speed = shown["statistics"]
    assert cpu == {
        "key": "cpu", "host": "node1", "unit": "%", "n": 2, "min": 10.0, "max": 30.0, "mean": 20.0,
        "p50": 20.0, "p95": 29.0, "last": 30.0, "total": None,
    }  # fmt: skip
    assert (read["key"], read["total"]) == ("disk.in", 5.0)
    assert (speed["key"], speed["mean"]) == ("disk.readMBps", 5.0)


def test_unknown_run_is_reported_in_one_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Monitor(data, "brave-otter-1")
    assert main(["show", "brave-otter-2"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"runvitals: no run 'brave-otter-2' in {data}/runs; did you mean brave-otter-1?\n"
