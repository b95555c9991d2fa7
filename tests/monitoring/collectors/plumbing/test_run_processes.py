"""The processes that belong to a run."""

from __future__ import annotations

import shutil
from pathlib import Path

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.plumbing.run_processes import RunProcesses
from tests.monitoring.collectors.trees import plant, process, put


def loadavg(last_pid: int) -> dict[str, str]:
    return {"proc/loadavg": f"0.00 0.00 0.00 1/9 {last_pid}\n"}


def test_descendants_that_start_and_end(tmp_path: Path) -> None:
    tree = loadavg(12) | process(10, 1) | process(11, 10) | process(12, 1)
    scope = plant(tmp_path, tree, pids=[10])
    run = RunProcesses(scope, f"{tmp_path}/proc", excluded=1)
    assert run.pids(0.0) == {10, 11}
    for path, text in (loadavg(14) | process(13, 11) | process(14, 1)).items():
        put(tmp_path, path, text)
    assert run.pids(1.0) == {10, 11, 13}
    shutil.rmtree(tmp_path / "proc" / "11")
    assert run.pids(2.0) == {10, 13}


def test_a_rank_attached_later_adds_its_descendants(tmp_path: Path) -> None:
    scope = plant(tmp_path, loadavg(22) | process(10, 1) | process(20, 1) | process(22, 20), pids=[10])
    run = RunProcesses(scope, f"{tmp_path}/proc", excluded=1)
    assert run.pids(0.0) == {10}
    scope.pids.append(20)
    assert run.pids(1.0) == {10, 20, 22}


def test_only_attached_processes_without_procfs_or_by_setting(tmp_path: Path) -> None:
    assert RunProcesses(Scope(pids=[7]), f"{tmp_path}/nowhere").pids(0.0) == {7}
    alone = plant(tmp_path, loadavg(12) | process(10, 1) | process(11, 10), pids=[10])
    alone.process_tree = False
    assert RunProcesses(alone, f"{tmp_path}/proc").pids(0.0) == {10}
