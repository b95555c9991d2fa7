"""CPU time of the host and of each core."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from runvitals.collectors.base import Absent, Scope
from runvitals.collectors.host.cpu import Cpu, probe
from tests.collectors import trees
from tests.collectors.trees import BARE_VM, plant, put, sample, stat
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = [{"user": 1000, "idle": 9000}, {"user": 1000, "idle": 9000}]


def after(tmp_path: Path, cores: list[dict[str, int]]) -> dict[str, float]:
    """The readings after /proc/stat has changed to that of these cores."""
    cpu = Cpu(plant(tmp_path, BARE_VM))
    put(tmp_path, "proc/stat", stat(cores))
    return sample(cpu, 1.0)


def test_percentages_cover_the_time_since_the_last_reading(tmp_path: Path) -> None:
    first = {"user": 1060, "system": 20, "idle": 9010, "iowait": 5, "steal": 5}
    second = {"user": 1000, "system": 0, "idle": 9100, "iowait": 0, "steal": 0}
    assert after(tmp_path, [first, second]) == {
        "cpu.mean": 42.5,
        "cpu.user": 30.0,
        "cpu.system": 10.0,
        "cpu.iowait": 2.5,
        "cpu.steal": 2.5,
        "cpu.0.cpu_percent": 85.0,
        "cpu.1.cpu_percent": 0.0,
    }


def test_nothing_is_written_before_enough_time_has_passed(tmp_path: Path) -> None:
    assert after(tmp_path, BEFORE) == {}
    assert after(tmp_path, [{"user": 1001, "idle": 9001}, {"user": 1001, "idle": 9001}]) == {}


def test_too_few_ticks_count_at_the_next_reading(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, BARE_VM))
    put(tmp_path, "proc/stat", stat([{"user": 1002, "idle": 9000}] * 2))
    assert sample(cpu, 1.0) == {}
    put(tmp_path, "proc/stat", stat([{"user": 1002, "idle": 9002}] * 2))
    assert sample(cpu, 2.0)["cpu.mean"] == 50.0


def test_decreasing_idle_time_counts_as_0(tmp_path: Path) -> None:
    readings = after(tmp_path, [{"user": 1010, "idle": 8999}, {"user": 1010, "idle": 9000}])
    assert readings["cpu.mean"] == 100.0
    assert readings["cpu.0.cpu_percent"] == 100.0


def test_a_core_that_is_switched_on_is_found(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, BARE_VM))
    put(tmp_path, "proc/stat", stat([{"user": 1050, "idle": 9050}] * 2 + [{"idle": 10}]))
    assert "cpu.2.cpu_percent" not in sample(cpu, 1.0)
    put(tmp_path, "proc/stat", stat([{"user": 1100, "idle": 9100}] * 2 + [{"user": 40, "idle": 70}]))
    assert sample(cpu, 2.0)["cpu.2.cpu_percent"] == 40.0


def test_a_core_that_was_off_leaves_a_gap_instead_of_a_spike(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, BARE_VM))
    put(tmp_path, "proc/stat", stat([{"user": 1050, "idle": 9050}, {"user": 1, "idle": 9}]))
    assert "cpu.1.cpu_percent" not in sample(cpu, 1.0)
    put(tmp_path, "proc/stat", stat([{"user": 1100, "idle": 9100}, {"user": 11, "idle": 19}]))
    assert sample(cpu, 2.0)["cpu.1.cpu_percent"] == 50.0


def test_only_the_cores_of_our_cpuset_are_reported(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, trees.SLURM))
    put(tmp_path, "proc/stat", stat([{"user": 1050, "idle": 9050}] * 2))
    readings = sample(cpu, 1.0)
    assert "cpu.1.cpu_percent" in readings
    assert "cpu.0.cpu_percent" not in readings
    assert readings["cpu.mean"] == 50.0


def test_a_core_of_our_cpuset_is_found_when_another_one_is_switched_off(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, trees.SLURM))
    lines = stat([{"user": 1050, "idle": 9050}] * 2).split("\n")
    put(tmp_path, "proc/stat", "\n".join(line for line in lines if not line.startswith("cpu0")))
    readings = sample(cpu, 1.0)
    assert readings["cpu.1.cpu_percent"] == 50.0
    assert "cpu.0.cpu_percent" not in readings


def test_on_a_large_host_the_cores_are_read_on_every_kth_sample(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, BARE_VM | {"proc/stat": stat([{"idle": 0}] * 192)}))
    seen = []
    for second in range(1, 7):
        put(tmp_path, "proc/stat", stat([{"user": 25 * second, "idle": 75 * second}] * 192))
        readings = sample(cpu, float(second))
        assert readings["cpu.mean"] == 25.0
        seen.append(readings.get("cpu.191.cpu_percent"))
    assert seen == [25.0, None, None, 25.0, None, None]


def test_absent_without_proc_stat(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="proc/stat cannot be read: No such file"):
        probe(plant(tmp_path, {}))


def test_this_machine() -> None:
    cpu = probe(Scope(pids=[os.getpid()]))
    deadline = time.monotonic() + PATIENCE_S
    readings: dict[str, float] = {}
    while "cpu.mean" not in readings and time.monotonic() < deadline:
        readings |= sample(cpu, time.monotonic())
    assert all(0.0 <= value <= 100.0 for value in readings.values())
    assert readings["cpu.mean"] > 0.0  # this loop keeps a core busy


def test_a_kernel_without_guest_time(tmp_path: Path) -> None:
    lines = "cpu  10 0 10 180 0 0 0 0\ncpu0 10 0 10 180 0 0 0 0\nintr 1\n"
    cpu = probe(plant(tmp_path, {"proc/stat": lines}))
    put(tmp_path, "proc/stat", lines.replace("10 0 10 180", "60 0 10 230"))
    assert sample(cpu, 1.0)["cpu.0.cpu_percent"] == 50.0
