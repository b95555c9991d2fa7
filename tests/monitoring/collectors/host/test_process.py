"""The process tree on copies of /proc: its members, and what counts once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import PAGE, TICKS_PER_SECOND
from runvitals.monitoring.collectors.host.process import RunProcessUsage
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import (
    BARE_VM,
    LIMITED_SLICE,
    last_pid,
    plant,
    process,
    put,
    sample,
    without,
)

MIB = 1 << 20
ROOT = 1000


class Machine:
    """A copied /proc that changes from sample to sample, a clock with steps of 2 s, and the readings
    of them.
    """

    def __init__(
        self, folder: Path, *started: trees.Tree, tree: trees.Tree = BARE_VM, follow: bool = True
    ) -> None:
        self.folder = folder
        self.scope = plant(folder, tree | last_pid(1100), pids=[ROOT])
        self.scope.process_tree = follow
        self.change(*started)
        self.collector = RunProcessUsage(self.scope, proc=f"{folder}/proc", excluded=1)
        self.clock_s = 100.0
        self.readings = self.after()

    def change(self, *processes: trees.Tree) -> None:
        for files in processes:
            for path, text in files.items():
                put(self.folder, path, text)

    def after(
        self, *changes: trees.Tree, ended: tuple[int, ...] = (), seconds: float = 2.0
    ) -> dict[str, float]:
        """The readings after these processes have changed or started, and those have ended."""
        self.change(*changes)
        for pid in ended:
            shutil.rmtree(self.folder / f"proc/{pid}")
        self.clock_s += seconds
        self.readings = sample(self.collector, self.clock_s)
        return self.readings

    def cpu_seconds(self) -> float:
        """CPU time of the tree in the last interval of 2 s, on the 2 CPUs that /proc/stat of the machine has
        no say about.
        """
        return self.readings["cpu"] / 100.0 * 2.0 * self.collector._cpus


def ticks(seconds: float) -> int:
    return round(seconds * TICKS_PER_SECOND)


def test_sums_over_the_tree(tmp_path: Path) -> None:
    machine = Machine(
        tmp_path,
        process(ROOT, 1, threads=3, pages=1024, read=MIB, written=2 * MIB),
        process(1001, ROOT, threads=2, pages=512, read=3 * MIB, name="(a) b) S 1"),
        process(1002, 1001, pages=256),
        process(1003, 1, pages=9999),
    )
    assert machine.readings == {
        "proc.count": 3.0,
        "proc.cpu.threads": 6.0,
        "proc.memory.rssMB": 1792 * PAGE / MIB,
        "proc.memory.percent": pytest.approx(1792 * PAGE * 100 / (16 << 30)),
        "proc.io.readMB": 4.0,
        "proc.io.writeMB": 2.0,
    }


def test_cpu_is_relative_to_the_available_cpus(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT), tree=LIMITED_SLICE)
    readings = machine.after(process(ROOT, 1, utime=ticks(0.5)), process(1001, ROOT, utime=ticks(1.0)))
    # 1.5 s of CPU time in 2 s on the 1.5 CPUs of the quota (or of one, if this machine has no more).
    assert readings["cpu"] == pytest.approx(1.5 / 2.0 / machine.collector._cpus * 100.0)
    assert machine.collector._cpus <= 1.5
    assert readings["proc.memory.percent"] == pytest.approx(512 * PAGE * 100 / (4 << 30))


def test_without_the_tree_only_the_attached_process_counts(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT), follow=False)
    assert machine.readings["proc.count"] == 1.0
    assert machine.after(process(1101, ROOT), last_pid(1101))["proc.count"] == 1.0


def test_a_new_child_is_found_by_its_pid(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    readings = machine.after(process(1101, ROOT, utime=ticks(0.2)), last_pid(1103))
    assert readings["proc.count"] == 2.0
    assert machine.cpu_seconds() == pytest.approx(
        0.2
    )  # all CPU time of a new process belongs to this interval


def test_children_of_a_new_child_are_found_with_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    readings = machine.after(process(1102, 1103), process(1103, ROOT), process(1104, 1), last_pid(1104))
    assert readings["proc.count"] == 3.0


def test_no_search_without_a_new_pid(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    assert machine.after(process(1050, ROOT))["proc.count"] == 1.0


def test_a_thread_is_not_a_process(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT))
    # A thread of the child: it has an entry in /proc, and its parent is the root.
    readings = machine.after(
        process(1101, ROOT, group=1001), process(1001, ROOT, utime=1, threads=2), last_pid(1101)
    )
    assert (readings["proc.count"], readings["proc.cpu.threads"]) == (2.0, 3.0)


def test_many_new_processes_are_searched_every_five_seconds(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    assert machine.after(process(1500, ROOT), last_pid(1600))["proc.count"] == 2.0
    assert machine.after(process(1900, ROOT), last_pid(2000))["proc.count"] == 2.0
    assert machine.after(seconds=4.0)["proc.count"] == 3.0


def test_pids_that_wrap_around(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    assert machine.after(process(1101, ROOT), process(300, ROOT), last_pid(310))["proc.count"] == 3.0


def test_without_the_last_pid_all_processes_are_read(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    machine.after(last_pid(0))
    assert machine.after(process(1050, ROOT), seconds=10.0)["proc.count"] == 2.0
    assert machine.after(process(1051, ROOT), seconds=10.0)["proc.count"] == 3.0


def test_a_child_whose_parent_ended_stays_in_the_tree(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT), process(1002, 1001))
    assert machine.after(process(1002, 1), ended=(1001,))["proc.count"] == 2.0
    assert machine.after(process(1102, 1002), last_pid(1102))["proc.count"] == 3.0


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT, utime=ticks(1), read=5 * MIB))
    readings = machine.after(process(1001, 1, start=7777, utime=ticks(9), read=500 * MIB))
    assert readings["proc.count"] == 1.0
    assert machine.cpu_seconds() == 0.0
    assert readings["proc.io.readMB"] == 5.0


def test_a_zombie_does_not_count(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT))
    readings = machine.after(process(1001, ROOT, state="Z", utime=1, pages=0))
    assert (readings["proc.count"], readings["proc.cpu.threads"]) == (1.0, 1.0)


def test_between_full_readings_a_zombie_is_recognized_by_its_memory(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT))
    zombie = process(1001, ROOT, state="Z", utime=1, pages=0)
    assert machine.after(zombie, seconds=0.5)["proc.count"] == 1.0


def test_storage_traffic_does_not_fall_when_a_child_ends(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT, read=10 * MIB))
    assert machine.after(ended=(1001,))["proc.io.readMB"] == 10.0


def test_traffic_taken_over_from_an_ended_child_counts_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1, read=1 * MIB), process(1001, ROOT, read=10 * MIB))
    # The kernel has added the child's 12 MiB, 2 of them after our last reading; the root itself has read 3
    # more.
    readings = machine.after(process(ROOT, 1, utime=1, read=(1 + 12 + 3) * MIB), ended=(1001,))
    assert readings["proc.io.readMB"] == 1.0 + 12.0 + 3.0


def test_a_whole_branch_that_ends_counts_once(tmp_path: Path) -> None:
    machine = Machine(
        tmp_path,
        process(ROOT, 1),
        process(1001, ROOT, written=4 * MIB),
        process(1002, 1001, written=6 * MIB),
    )
    readings = machine.after(process(ROOT, 1, utime=1, written=10 * MIB), ended=(1001, 1002))
    assert readings["proc.io.writeMB"] == 10.0


def test_all_cpu_time_of_an_ended_child_counts_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT, utime=ticks(50)))
    machine.after(process(1001, ROOT, utime=ticks(51)))
    assert machine.cpu_seconds() == pytest.approx(1.0, abs=0.011)
    # It ran another half second and ended. The root's counters include its 51.5 s, and 0.1 s of its own.
    machine.after(process(ROOT, 1, utime=ticks(0.1), cutime=ticks(51.5)), ended=(1001,))
    assert machine.cpu_seconds() == pytest.approx(0.6)


def test_short_lived_children_count(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    machine.after(process(ROOT, 1, utime=ticks(0.1), cutime=ticks(1.5)))
    assert machine.cpu_seconds() == pytest.approx(1.6)
    machine.after(process(ROOT, 1, utime=ticks(0.2), cutime=ticks(1.75)), seconds=2.0)
    assert machine.cpu_seconds() == pytest.approx(0.35)


def test_a_child_that_is_not_reaped_does_not_make_cpu_negative(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT, utime=ticks(500)))
    assert machine.after(process(ROOT, 1, utime=1), ended=(1001,))["cpu"] >= 0.0
    # What was taken over is forgotten: later children count in full.
    machine.after(process(ROOT, 1, utime=2, cutime=ticks(1.0)))
    assert machine.cpu_seconds() == pytest.approx(1.0, abs=0.011)


def test_no_more_cpu_time_than_the_machine_has(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    readings = machine.after(process(ROOT, 1, utime=ticks(1), cutime=ticks(5000)))
    assert readings["cpu"] == pytest.approx(100.0 * machine.collector._online_cpus / machine.collector._cpus)


def test_earlier_use_of_an_attached_process_does_not_count(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1, read=MIB))
    machine.scope.pids.append(1001)
    readings = machine.after(
        process(1001, 1, utime=ticks(900), cutime=ticks(900), read=70 * MIB),
        process(1002, 1001, read=9 * MIB),
    )
    assert readings["proc.count"] == 3.0
    assert machine.cpu_seconds() == 0.0
    assert readings["proc.io.readMB"] == 1.0
    readings = machine.after(process(1001, 1, utime=ticks(900.5), cutime=ticks(900), read=72 * MIB))
    assert machine.cpu_seconds() == pytest.approx(0.5)
    assert readings["proc.io.readMB"] == 3.0


def test_a_root_that_ends_is_dropped_and_its_pid_not_reused(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1, read=MIB))
    assert machine.after(ended=(ROOT,)) == {"proc.io.readMB": 1.0, "proc.io.writeMB": 0.0}
    assert "proc.count" not in machine.after(process(ROOT, 1, start=5555), last_pid(1101))


def test_an_attached_process_that_has_already_ended(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    machine.scope.pids.append(4242)
    assert machine.after()["proc.count"] == 1.0


def test_the_monitor_and_its_children_do_not_count(tmp_path: Path) -> None:
    scope = plant(
        tmp_path, BARE_VM | process(ROOT, 1) | process(1001, ROOT) | process(1002, 1001), pids=[ROOT]
    )
    collector = RunProcessUsage(scope, proc=f"{tmp_path}/proc", excluded=1001)
    assert sample(collector, 1.0)["proc.count"] == 1.0


def test_a_kernel_without_io_accounting(tmp_path: Path) -> None:
    files = {path: text for path, text in process(ROOT, 1).items() if not path.endswith("/io")}
    machine = Machine(tmp_path, files)
    assert not [key for key in machine.readings if key.startswith("proc.io")]
    assert "cannot be read" in machine.collector.absent["proc.io"]


def test_a_sum_without_the_traffic_of_another_users_process_is_named(tmp_path: Path) -> None:
    files = {path: text for path, text in process(1001, ROOT).items() if not path.endswith("/io")}
    machine = Machine(tmp_path, process(ROOT, 1, read=MIB), files)
    assert machine.readings["proc.io.readMB"] == 1.0
    assert machine.collector.absent["proc.io"].startswith("incomplete: ")


def test_many_busy_children_are_read_in_turn(tmp_path: Path) -> None:
    children = range(2001, 2101)
    machine = Machine(tmp_path, process(ROOT, 1), *(process(pid, ROOT, pages=10) for pid in children))
    assert machine.readings["proc.count"] == 101.0
    readings = machine.after(*(process(pid, ROOT, pages=20, utime=1, threads=2) for pid in children))
    assert readings["proc.memory.rssMB"] == (256 + 20 * 100) * PAGE / MIB
    assert 101.0 < readings["proc.cpu.threads"] < 201.0
    for _ in range(3):
        readings = machine.after()
    assert readings["proc.cpu.threads"] == 201.0


def test_memory_of_a_sleeping_process_is_read_once_a_minute(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), process(1001, ROOT, pages=100))
    put(tmp_path, "proc/1001/stat", process(1001, ROOT, pages=50)["proc/1001/stat"])
    assert machine.after()["proc.memory.rssMB"] == 356 * PAGE / MIB
    for _ in range(30):
        machine.after()
    assert machine.readings["proc.memory.rssMB"] == 306 * PAGE / MIB


def test_threads_and_storage_are_read_every_two_seconds(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1))
    written = ["proc.cpu.threads" in machine.after(seconds=1.0) for _ in range(4)]
    assert written == [False, True, False, True]
    assert "proc.memory.rssMB" in machine.readings


def test_the_percentage_of_unknown_memory_is_left_out(tmp_path: Path) -> None:
    machine = Machine(tmp_path, process(ROOT, 1), tree=without(BARE_VM, ["proc/meminfo"]))
    assert "proc.memory.rssMB" in machine.readings
    assert "proc.memory.percent" not in machine.readings
