"""The busiest processes, read from a fake /proc."""

from __future__ import annotations

from pathlib import Path

from runvitals.monitoring.collectors.base import PAGE, TICKS_PER_SECOND
from runvitals.terminal.top.processes import ProcessList
from tests.monitoring.collectors.trees import put


def process(root: Path, pid: int, seconds: float, pages: int, command: str = "", name: str = "x") -> None:
    ticks = int(seconds * TICKS_PER_SECOND)
    put(
        root,
        f"{pid}/stat",
        f"{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 9999 {pages} 0\n",
    )
    put(root, f"{pid}/cmdline", command.replace(" ", "\0"))
    put(root, f"{pid}/comm", f"{name}\n")


def test_sorted_by_cpu_since_the_last_call_then_by_memory(tmp_path: Path) -> None:
    process(tmp_path, 10, 100.0, 50, "python old.py")
    process(tmp_path, 11, 1.0, 500, "python train.py --token abc")
    process(tmp_path, 12, 0.0, 10, name="kworker) (1")
    processes = ProcessList(str(tmp_path))
    assert [process.pid for process in processes.heaviest(9, 100.0)] == [11, 10, 12]
    process(tmp_path, 12, 1.5, 10, name="kworker) (1")
    first, second = processes.heaviest(2, 102.0)
    assert (first.pid, first.cpu_percent, first.command) == (12, 75.0, "[kworker) (1]")
    assert (second.command, second.rss_mib) == ("python train.py --token ***", 500 * PAGE / 2**20)


def test_process_that_just_ended_and_system_without_procfs(tmp_path: Path) -> None:
    put(tmp_path, "13/stat", "")
    assert ProcessList(str(tmp_path)).heaviest(9, 1.0) == []
    assert ProcessList(str(tmp_path / "nothing")).heaviest(9, 1.0) == []
