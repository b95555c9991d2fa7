"""CPU time of the host and of each core."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope, Tick
from runvitals.monitoring.collectors.host.cpu import Cpu, probe
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import BARE_VM, plant, put, sample, stat
from tests.patience import PATIENCE_S

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


def test_what_all_use_of_the_processors_of_our_cpuset(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, trees.SLURM))
    put(tmp_path, "proc/stat", stat([{"user": 1000, "idle": 9100}, {"user": 1080, "idle": 9020}]))
    readings = sample(cpu, 1.0)
    assert (readings["cpu.mean"], readings["cpu.ofAllowed"]) == (40.0, 80.0)


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


WRAPPED = (1 << 64) - 832_138_573  # steal that fell below 0, as the kernel prints it


def series(tmp_path: Path, *texts: str) -> list[dict[str, float]]:
    """The readings of these texts of /proc/stat, a second apart; the first one is only the baseline."""
    cpu = Cpu(plant(tmp_path, BARE_VM | {"proc/stat": texts[0]}))
    readings = []
    for second, text in enumerate(texts[1:], 1):
        put(tmp_path, "proc/stat", text)
        readings.append(sample(cpu, float(second)))
    return readings


def busy_for(seconds: int, user: int = 0, idle: int = 0, steal: int = 0) -> str:
    """/proc/stat of two cores after so many seconds, a quarter of which they were busy."""
    return stat([{"user": user + 25 * seconds, "idle": idle + 75 * seconds, "steal": steal}] * 2)


@pytest.mark.parametrize("steal", [WRAPPED, 1_844_674_407_370_955, 4_000_000])
def test_steal_that_wraps_around_is_left_out_once(tmp_path: Path, steal: int) -> None:
    texts = [busy_for(0), busy_for(1), busy_for(2, steal=steal), busy_for(3), busy_for(4)]
    first, jumped, *others = series(tmp_path, *texts)
    assert jumped == {}
    assert all(readings == first for readings in others)
    assert first["cpu.mean"] == first["cpu.1.cpu_percent"] == 25.0


def test_steal_that_stays_wrapped_is_left_out_once(tmp_path: Path) -> None:
    texts = [busy_for(0), busy_for(1), *(busy_for(second, steal=WRAPPED) for second in (2, 3, 4))]
    first, jumped, *others = series(tmp_path, *texts)
    assert jumped == {}
    assert all(readings == first for readings in others)


@pytest.mark.parametrize("user", [0, 40_000], ids=["after a reset", "with other counts"])
def test_counts_that_fall_are_left_out_once(tmp_path: Path, user: int) -> None:
    texts = [busy_for(0, 90_000, 900_000), busy_for(1, 90_000, 900_000), *(busy_for(i, user) for i in (2, 3))]
    first, jumped, second = series(tmp_path, *texts)
    assert jumped == {}
    assert second == first


def test_counts_that_are_0_for_once_do_not_count(tmp_path: Path) -> None:
    first, jumped, second = series(tmp_path, busy_for(50), busy_for(51), busy_for(0), busy_for(53))
    assert jumped == {}
    assert second == first


def test_a_jump_is_one_event(tmp_path: Path) -> None:
    cpu = Cpu(plant(tmp_path, BARE_VM | {"proc/stat": busy_for(50)}))
    events = []
    for second, text in enumerate([busy_for(51), busy_for(1), busy_for(2), busy_for(0), busy_for(1)], 1):
        put(tmp_path, "proc/stat", text)
        tick = Tick(float(second))
        cpu.sample(tick)
        events += tick.events
    assert [(event["name"], event["level"]) for event in events] == [("counter_reset", "info")]


ONE_CORE = "cpu 10 0 10 180 0 0 0 0 0 0\ncpu0 10 0 10 180 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ONE_CORE, ONE_CORE.replace("10 0 10 180", "60 0 10 230")),
        (ONE_CORE.rstrip("\n"), ONE_CORE.replace("10 0 10 180", "60 0 10 230").rstrip("\n")),
        (ONE_CORE + "ctxt 1\n", ONE_CORE.replace("10 0 10 180", "60 0 10 230") + "ctxt 2\n"),
        ("btime 7\n\n" + ONE_CORE, "btime 7\n\n" + ONE_CORE.replace("10 0 10 180", "60 0 10 230")),
        ("cpu 1 0 1 8 0\ncpu0 1 0 1 8 0\nintr 1\n", "cpu 51 0 1 58 0\ncpu0 51 0 1 58 0\nintr 1\n"),
    ],
    ids=["no intr", "no newline at the end", "another line", "lines before", "five states"],
)
def test_lines_that_other_kernels_and_sandboxes_have(tmp_path: Path, before: str, after: str) -> None:
    cpu = probe(plant(tmp_path, {"proc/stat": before}))
    put(tmp_path, "proc/stat", after)
    readings = sample(cpu, 1.0)
    assert readings["cpu.mean"] == readings["cpu.0.cpu_percent"] == 50.0
    assert cpu.absent == {}


def test_a_core_that_appears_at_the_end_of_the_file(tmp_path: Path) -> None:
    second = "cpu1 0 0 0 10 0 0 0 0 0 0\n"
    cpu = probe(plant(tmp_path, {"proc/stat": ONE_CORE}))
    put(tmp_path, "proc/stat", ONE_CORE + second)
    sample(cpu, 1.0)
    put(tmp_path, "proc/stat", ONE_CORE + second.replace("0 10", "30 80"))
    assert sample(cpu, 2.0)["cpu.1.cpu_percent"] == 30.0


def test_the_total_alone(tmp_path: Path) -> None:
    cpu = probe(plant(tmp_path, {"proc/stat": "cpu 10 0 10 180 0 0 0 0\nintr 1\n"}))
    put(tmp_path, "proc/stat", "cpu 60 0 10 230 0 0 0 0\nintr 1\n")
    assert sample(cpu, 1.0)["cpu.mean"] == 50.0


def test_a_missing_or_odd_line_leaves_out_its_values_with_the_reason(tmp_path: Path) -> None:
    before = "cpu0 10 0 10 180 0 0 0 0\ncpu1 ? ? ?\n"
    cpu = probe(plant(tmp_path, {"proc/stat": before}))
    put(tmp_path, "proc/stat", before.replace("10 0 10 180", "60 0 10 230"))
    assert sample(cpu, 1.0) == {"cpu.0.cpu_percent": 50.0}
    assert "no line with the times of all CPUs" in cpu.absent["cpu"]
    assert "cpu1 ? ? ?" in cpu.absent["cpu1"]


@pytest.mark.parametrize("text", ["", "intr 1\n", "cpu\n", "cpu a b c d e\n"])
def test_absent_without_any_line_of_a_cpu(tmp_path: Path, text: str) -> None:
    with pytest.raises(Absent, match="has no line with the times of the CPUs"):
        probe(plant(tmp_path, {"proc/stat": text}))


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
