"""The process tree of this machine: real processes that are started and killed."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.host.process import RunProcessUsage, probe
from runvitals.monitoring.collectors.host.run_process import (
    DescriptorBudget,
    ProcessGone,
    ProcessUsage,
    has_process_clocks,
)
from tests.monitoring.collectors.trees import sample

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# A process that runs the statements it reads, and confirms each one.
OBEDIENT = (
    "import sys, os, threading, time\nfor line in sys.stdin:\n    exec(line)\n    print('done', flush=True)\n"
)


# A statement that waits for a condition, at most ten seconds.
UNTIL = "any(({}) or time.sleep(0.001) for _ in range(10_000)) or sys.exit('nothing happened')"


class Commanded:
    """A Python process that runs statements for the tests."""

    def __init__(self, **options: bool) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", OBEDIENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )
        self.pid: int = self.process.pid
        self.run("children = []")

    def run(self, statement: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(statement + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def fork(self, statement: str = "time.sleep(600)") -> None:
        """Start a child that runs a statement and exits."""
        self.run(f"pid = os.fork(); children.append(pid) if pid else ({statement}, os._exit(0))")

    def reap(self) -> None:
        """Kill and reap the child started last."""
        self.run("os.kill(children[-1], 9); os.waitpid(children.pop(), 0)")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def commanded(**options: bool) -> Iterator[Commanded]:
    process = Commanded(**options)
    try:
        yield process
    finally:
        process.run("[(os.kill(pid, 9), os.waitpid(pid, 0)) for pid in children]")
        process.end()


@pytest.fixture
def root() -> Iterator[Commanded]:
    with commanded() as process:
        yield process


class Watch:
    """Samples a tree on a clock that advances 2 s a sample, so that no test has to wait."""

    def __init__(self, *pids: int) -> None:
        self.scope = Scope(pids=pids)
        self.collector = RunProcessUsage(self.scope)
        self.clock_s = time.monotonic() + 1000.0

    def __call__(self) -> dict[str, float]:
        self.clock_s += 2.0
        return sample(self.collector, self.clock_s)


def test_children_come_and_go(root: Commanded) -> None:
    watch = Watch(root.pid)
    assert watch()["proc.count"] == 1.0
    root.fork()
    root.fork()
    readings = watch()
    assert readings["proc.count"] == 3.0
    assert readings["proc.cpu.threads"] == 3.0
    root.reap()
    assert watch()["proc.count"] == 2.0


def test_existing_children_are_found(root: Commanded) -> None:
    root.fork()
    assert Watch(root.pid)()["proc.count"] == 2.0


def test_threads_are_not_processes(root: Commanded) -> None:
    watch = Watch(root.pid)
    watch()
    root.run("[threading.Thread(target=time.sleep, args=(600,), daemon=True).start() for _ in range(4)]")
    readings = watch()
    assert (readings["proc.count"], readings["proc.cpu.threads"]) == (1.0, 5.0)


def test_a_child_in_its_own_session_is_found(root: Commanded) -> None:
    watch = Watch(root.pid)
    watch()
    root.fork("os.setsid(), time.sleep(600)")
    root.run(UNTIL.format("os.getsid(children[-1]) == children[-1]"))
    assert watch()["proc.count"] == 2.0


def test_other_processes_do_not_count(root: Commanded) -> None:
    watch = Watch(root.pid)
    with commanded() as other, commanded(start_new_session=True) as third:
        other.fork()
        third.fork()
        assert watch()["proc.count"] == 1.0


def test_a_zombie_does_not_count(root: Commanded) -> None:
    watch = Watch(root.pid)
    root.fork()
    assert watch()["proc.count"] == 2.0
    root.run("os.kill(children[-1], 9); os.waitid(os.P_PID, children[-1], os.WEXITED | os.WNOWAIT)")
    assert watch()["proc.count"] == 1.0
    root.run("os.waitpid(children.pop(), 0)")
    assert watch()["proc.count"] == 1.0


def test_a_root_that_is_killed_is_dropped(root: Commanded) -> None:
    with commanded() as second:
        watch = Watch(root.pid, second.pid)
        assert watch()["proc.count"] == 2.0
        root.process.kill()
        root.process.wait()
        assert watch()["proc.count"] == 1.0
    root.run = lambda statement: None  # type: ignore[method-assign]  # no process left to stop


def test_a_rank_attached_later_is_found_with_its_children(root: Commanded) -> None:
    with commanded() as second:
        second.fork()
        watch = Watch(root.pid)
        assert watch()["proc.count"] == 1.0
        watch.scope.pids.append(second.pid)
        assert watch()["proc.count"] == 3.0


BURN = "exec('end = time.process_time() + {seconds}\\nwhile time.process_time() < end: pass')"


def used_seconds(watch: Watch, readings: dict[str, float]) -> float:
    return readings["cpu"] / 100.0 * 2.0 * watch.collector._cpus


def test_all_cpu_time_of_the_tree_counts_once(root: Commanded) -> None:
    watch = Watch(root.pid)
    total = used_seconds(watch, watch())
    root.run(BURN.format(seconds=0.1))
    total += used_seconds(watch, watch())
    # A child that is sampled, works on, and is reaped; and one that is never sampled.
    root.fork(BURN.format(seconds=0.1) + ", time.sleep(600)")
    total += used_seconds(watch, watch())
    root.run(UNTIL.format("time.clock_gettime((~children[-1] << 3) | 2) >= 0.1"))
    total += used_seconds(watch, watch())
    root.reap()
    total += used_seconds(watch, watch())
    root.fork(BURN.format(seconds=0.1))
    root.run("os.waitpid(children.pop(), 0)")
    total += used_seconds(watch, watch())
    assert 0.28 <= total <= 0.45


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder that is not in memory, as that of `tmp_path` may be."""
    with tempfile.TemporaryDirectory(prefix="runvitals-") as folder:
        yield Path(folder)


def test_all_storage_traffic_of_the_tree_counts_once(root: Commanded, on_disk: Path) -> None:
    watch = Watch(root.pid)
    before = watch().get("proc.io.writeMB")
    if before is None:
        pytest.skip("this kernel keeps no account of storage")
    path = str(on_disk / "file")
    write = f"(f := open({path!r}, 'wb')).write(bytes(4 << 20)), f.flush(), os.fsync(f.fileno())"
    root.run(write)
    if watch()["proc.io.writeMB"] - before < 4.0:
        pytest.skip("this machine's folder for temporary files is not on a disk")
    root.fork(f"{write}, time.sleep(600)")
    root.run(UNTIL.format("open(f'/proc/{children[-1]}/io').read().split()[11] == str(4 << 20)"))
    written = [watch()["proc.io.writeMB"] - before]
    root.reap()
    written += [watch()["proc.io.writeMB"] - before for _ in range(2)]
    root.fork(write)
    root.run("os.waitpid(children.pop(), 0)")
    written.append(watch()["proc.io.writeMB"] - before)
    assert written == pytest.approx([8.0, 8.0, 8.0, 12.0], abs=0.5)
    assert written == sorted(written)


def test_files_that_are_not_kept_open(root: Commanded) -> None:
    descriptors = DescriptorBudget()
    descriptors.left = 0
    member = ProcessUsage(
        "/proc", root.pid, 0, is_new=False, descriptors=descriptors, has_clock=has_process_clocks()
    )
    assert (member.threads, member.rss_pages > 0) == (1, True)
    root.process.kill()
    root.process.wait()
    with pytest.raises(ProcessGone):
        member.read_all()
    with pytest.raises(ProcessGone):
        member.read_memory()
    root.run = lambda statement: None  # type: ignore[method-assign]  # no process left to stop


def test_the_budget_of_open_files(root: Commanded) -> None:
    descriptors = DescriptorBudget()
    before = descriptors.left
    member = ProcessUsage("/proc", root.pid, 0, is_new=False, descriptors=descriptors, has_clock=True)
    member.read_memory()
    assert before - descriptors.left == 3
    member.close()
    assert descriptors.left == before


def test_the_soft_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected = min(hard, 4096) if hard != resource.RLIM_INFINITY else 4096
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, expected), hard))
    try:
        descriptors = DescriptorBudget()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= expected
        assert descriptors.left >= expected - 128
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_process_clocks_the_cpu_time_is_read_from_stat(root: Commanded) -> None:
    member = ProcessUsage("/proc", root.pid, 0, is_new=False, descriptors=DescriptorBudget(), has_clock=False)
    root.run(BURN.format(seconds=0.1))
    assert member.read_clock() >= 80_000_000


def test_this_machine() -> None:
    readings = sample(RunProcessUsage(Scope(pids=[os.getpid()]), excluded=0), time.monotonic())
    assert readings["proc.count"] >= 1.0
    assert readings["proc.cpu.threads"] >= 1.0
    assert readings["proc.memory.rssMB"] > 5.0
    assert 0.0 < readings["proc.memory.percent"] < 100.0
    assert probe(Scope()).name == "process"
