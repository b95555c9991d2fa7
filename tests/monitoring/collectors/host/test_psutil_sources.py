"""Readings through psutil, for macOS and Windows: on fake machines, and on this one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from types import SimpleNamespace as Has
from typing import Any

import psutil
import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host import psutil_sources
from tests.monitoring.collectors.trees import sample

MIB = 1 << 20
GIB = 1 << 30


class NoSuchProcess(Exception):
    pass


class AccessDenied(Exception):
    pass


class FakeProcess:
    """A process with psutil's interface."""

    def __init__(self, machine: FakePsutil, pid: int, children: tuple[int, ...] = ()) -> None:
        self.machine = machine
        self.pid = pid
        self.child_pids = children
        self.used_s = 1.0
        self.rss = 100 * MIB
        self.denied = False

    def _check(self) -> None:
        if self.pid not in self.machine.processes:
            raise NoSuchProcess
        if self.denied:
            raise AccessDenied

    @contextlib.contextmanager
    def oneshot(self) -> Iterator[None]:
        yield

    def cpu_times(self) -> Has:
        self._check()
        return Has(user=self.used_s * 0.75, system=self.used_s * 0.25, children_user=99.0)

    def memory_info(self) -> Has:
        self._check()
        return Has(rss=self.rss)

    def num_threads(self) -> int:
        self._check()
        return 2

    def children(self, recursive: bool) -> list[FakeProcess]:
        assert recursive
        children = [self.machine.processes[pid] for pid in self.child_pids if pid in self.machine.processes]
        return children + [grandchild for child in children for grandchild in child.children(recursive=True)]


class FakeWindowsProcess(FakeProcess):
    """Windows reports a process's storage traffic; macOS does not."""

    read = written = 0

    def io_counters(self) -> Has:
        self._check()
        return Has(read_bytes=self.read, write_bytes=self.written)


class FakePsutil:
    """The functions of psutil that the collectors use, for a machine that tests can change."""

    NoSuchProcess = NoSuchProcess
    AccessDenied = AccessDenied

    def __init__(self) -> None:
        self.processes: dict[int, FakeProcess] = {}
        self.times = [Has(user=0.0, nice=0.0, system=0.0, idle=0.0) for _ in range(2)]
        self.disks: dict[str, Has] | None = {"disk0": io(10 * MIB, 20 * MIB)}
        self.nics = {"en0": nic(1000, 100), "lo0": nic(5, 5), "utun3": nic(900, 90), "en5": nic(0, 0)}
        self.swap = Has(total=4 * GIB, used=1 * GIB)
        self.partitions = [Has(mountpoint="/", fstype="apfs", opts="ro,local")]
        self.queried: list[str] = []

    def Process(self, pid: int) -> FakeProcess:
        if pid not in self.processes:
            raise NoSuchProcess
        return self.processes[pid]

    def cpu_count(self) -> int:
        return 2

    def cpu_times(self, percpu: bool = False) -> Any:
        if percpu:
            return [Has(**vars(core)) for core in self.times]
        names = vars(self.times[0])
        return Has(**{name: sum(getattr(core, name) for core in self.times) for name in names})

    def virtual_memory(self) -> Has:
        return Has(total=16 * GIB, available=4 * GIB)

    def swap_memory(self) -> Has:
        return self.swap

    def getloadavg(self) -> tuple[float, float, float]:
        return 3.0, 2.0, 1.0

    def boot_time(self) -> float:
        return time.time() - 5000.0

    def disk_io_counters(self, perdisk: bool, nowrap: bool) -> dict[str, Has] | None:
        assert perdisk
        assert not nowrap
        return self.disks

    def net_io_counters(self, pernic: bool, nowrap: bool) -> dict[str, Has]:
        assert pernic
        assert not nowrap
        return self.nics

    def disk_partitions(self, all: bool) -> list[Has]:
        assert all
        return self.partitions

    def disk_usage(self, path: str) -> Has:
        self.queried.append(path)
        if path == "/nowhere":
            raise FileNotFoundError(2, "No such file or directory", path)
        return Has(total=100 * GIB, used=60 * GIB, free=20 * GIB)


def io(read: int, written: int) -> Has:
    return Has(read_bytes=read, write_bytes=written, read_count=7, write_count=8)


def nic(recv: int, sent: int) -> Has:
    return Has(bytes_recv=recv, bytes_sent=sent, errin=1, errout=2, dropin=3, dropout=4)


@pytest.fixture
def machine() -> Any:
    return FakePsutil()


def tree(machine: FakePsutil, kind: type[FakeProcess] = FakeProcess) -> list[FakeProcess]:
    """Process 10 with a child 11, whose child is 12."""
    for pid, children in ((10, (11,)), (11, (12,)), (12, ())):
        machine.processes[pid] = kind(machine, pid, children)
    return [machine.processes[pid] for pid in (10, 11, 12)]


def test_the_process_tree(machine: Any) -> None:
    root, child, _ = tree(machine)
    processes = psutil_sources.PsutilProcesses(Scope(pids=[10]), machine)
    assert sample(processes, 1.0) == {
        "proc.count": 3.0,
        "proc.cpu.threads": 6.0,
        "proc.memory.rssMB": 300.0,
        "proc.memory.percent": pytest.approx(300 * 100 / (16 * 1024)),
    }
    root.used_s += 0.5
    child.used_s += 1.5
    assert sample(processes, 2.0)["cpu"] == pytest.approx(100.0)  # 2 s of CPU time in 1 s on 2 CPUs


def test_without_the_tree_only_the_attached_process_counts(machine: Any) -> None:
    tree(machine)
    assert (
        sample(psutil_sources.PsutilProcesses(Scope(pids=[10], process_tree=False), machine), 1.0)[
            "proc.count"
        ]
        == 1.0
    )


def test_a_child_that_ends_does_not_make_cpu_negative(machine: Any) -> None:
    tree(machine)
    processes = psutil_sources.PsutilProcesses(Scope(pids=[10]), machine)
    sample(processes, 1.0)
    del machine.processes[12]
    readings = sample(processes, 2.0)
    assert (readings["proc.count"], readings["cpu"]) == (2.0, 0.0)


def test_new_children_are_looked_for_every_five_seconds(machine: Any) -> None:
    tree(machine)
    processes = psutil_sources.PsutilProcesses(Scope(pids=[10]), machine)
    sample(processes, 0.0)
    machine.processes[13] = FakeProcess(machine, 13)
    machine.processes[12].child_pids = (13,)
    assert [sample(processes, float(second))["proc.count"] for second in range(1, 6)] == [3.0] * 4 + [4.0]


def test_a_grandchild_stays_when_its_parent_ends(machine: Any) -> None:
    tree(machine)
    processes = psutil_sources.PsutilProcesses(Scope(pids=[10]), machine)
    sample(processes, 0.0)
    del machine.processes[11]
    machine.processes[13] = FakeProcess(machine, 13)
    machine.processes[12].child_pids = (13,)
    assert sample(processes, 10.0)["proc.count"] == 3.0


def test_a_rank_attached_later_is_found_immediately(machine: Any) -> None:
    tree(machine)
    scope = Scope(pids=[12])
    processes = psutil_sources.PsutilProcesses(scope, machine)
    assert sample(processes, 1.0)["proc.count"] == 1.0
    scope.pids.append(10)
    assert sample(processes, 2.0)["proc.count"] == 3.0


def test_no_values_when_all_processes_have_ended(machine: Any) -> None:
    tree(machine)
    processes = psutil_sources.PsutilProcesses(Scope(pids=[10]), machine)
    sample(processes, 1.0)
    machine.processes.clear()
    assert sample(processes, 10.0) == {}


def test_values_of_another_users_process_are_missing(machine: Any) -> None:
    tree(machine)[1].denied = True
    readings = sample(psutil_sources.PsutilProcesses(Scope(pids=[10]), machine), 1.0)
    assert (readings["proc.count"], readings["proc.memory.rssMB"]) == (3.0, 200.0)


def test_storage_traffic_on_windows_does_not_fall(machine: Any) -> None:
    _, child, grandchild = tree(machine, FakeWindowsProcess)
    child.read, grandchild.written = 5 * MIB, 7 * MIB  # type: ignore[attr-defined]
    processes = psutil_sources.PsutilProcesses(Scope(pids=[10]), machine)
    assert sample(processes, 1.0)["proc.io.readMB"] == 5.0
    del machine.processes[12]
    readings = sample(processes, 2.0)
    assert (readings["proc.io.readMB"], readings["proc.io.writeMB"]) == (5.0, 7.0)


def test_cpu_on_macos(machine: Any) -> None:
    cpu = psutil_sources.PsutilCpu(machine)
    assert sample(cpu, 0.0) == {}
    machine.times = [
        Has(user=0.5, nice=0.25, system=0.0, idle=0.25),
        Has(user=0.0, nice=0.0, system=0.25, idle=0.75),
    ]
    assert sample(cpu, 1.0) == {
        "cpu.mean": 50.0,
        "cpu.user": 37.5,
        "cpu.system": 12.5,
        "cpu.0.cpu_percent": 75.0,
        "cpu.1.cpu_percent": 25.0,
    }


def test_cpu_on_windows_does_not_count_interrupts_twice(machine: Any) -> None:
    machine.times = [Has(user=0.0, system=0.0, idle=0.0, interrupt=0.0, dpc=0.0)]
    cpu = psutil_sources.PsutilCpu(machine)
    machine.times = [Has(user=0.2, system=0.3, idle=0.5, interrupt=0.2, dpc=0.1)]
    readings = sample(cpu, 1.0)
    assert readings["cpu.mean"] == pytest.approx(50.0)
    assert "cpu.iowait" not in readings


def test_load_and_uptime_on_macos(machine: Any) -> None:
    readings = sample(psutil_sources.PsutilLoad(machine, "darwin"), 1.0)
    assert readings.pop("system.uptime") == pytest.approx(5000.0, abs=5.0)
    assert readings == {"system.load1": 3.0, "system.load5": 2.0, "system.load15": 1.0}


def test_windows_has_no_load_in_the_first_seconds(machine: Any) -> None:
    load = psutil_sources.PsutilLoad(machine, "win32")
    written = ["system.load1" in sample(load, second) for second in (0.0, 5.0, 10.0)]
    assert written == [False, False, True]


def test_memory_and_swap(machine: Any) -> None:
    memory = psutil_sources.PsutilMemory(machine)
    readings = {
        "memory_percent": 75.0,
        "host.memory_percent": 75.0,
        "memory.usedMB": 12.0 * 1024,
        "proc.memory.availableMB": 4.0 * 1024,
    }
    assert sample(memory, 1.0) == readings | {"swap.used": float(GIB), "swap.used_percent": 25.0}
    machine.swap = Has(total=0, used=0)
    assert sample(memory, 1.0) == readings


def test_disks(machine: Any) -> None:
    machine.disks["disk4"] = io(MIB, MIB)
    readings = sample(psutil_sources.PsutilDisk(machine), 1.0)
    assert (readings["disk.in"], readings["disk.out"]) == (11.0, 21.0)
    assert (readings["disk.disk0.in"], readings["disk.disk0.readOps"]) == (10.0, 7.0)


def test_counters_disabled_on_windows_are_missing(machine: Any) -> None:
    machine.disks = None
    assert sample(psutil_sources.PsutilDisk(machine), 1.0) == {}


def test_network_traffic_is_counted_once(machine: Any) -> None:
    assert sample(psutil_sources.PsutilNetwork(machine), 1.0) == {
        "network.recv": 1000.0,
        "network.sent": 100.0,
        "network.en0.recv": 1000.0,
        "network.en0.sent": 100.0,
        "network.en0.errors": 3.0,
        "network.en0.drops": 7.0,
    }


def test_interface_names_on_windows(machine: Any) -> None:
    machine.nics = {
        "Local Area Connection": nic(10, 20),
        "Loopback Pseudo-Interface 1": nic(1, 1),
        "vEthernet (WSL)": nic(5, 5),
    }
    assert sample(psutil_sources.PsutilNetwork(machine), 1.0)["network.sent"] == 20.0


def test_the_root_on_macos_is_its_data_volume(machine: Any) -> None:
    filesystem = psutil_sources.watch_filesystems(Scope(disk_paths=("/",)), machine, "darwin")
    assert sample(filesystem, 1.0) == {
        "disk./.usagePercent": 75.0,
        "disk./.usageGB": 60.0,
        "disk./.availableGB": 20.0,
    }
    assert set(machine.queried) == {"/System/Volumes/Data"}


def test_a_missing_path_is_reported(machine: Any) -> None:
    filesystem = psutil_sources.watch_filesystems(Scope(disk_paths=("/", "/nowhere")), machine, "win32")
    assert filesystem.absent == {"disk./nowhere": "/nowhere: No such file or directory"}
    with pytest.raises(Absent, match="/nowhere: No such file"):
        psutil_sources.watch_filesystems(Scope(disk_paths=("/nowhere",)), machine, "win32")


def test_network_drives_are_not_read_before_their_turn(machine: Any) -> None:
    machine.partitions.append(Has(mountpoint="/share", fstype="NTFS", opts="rw,remote"))
    psutil_sources.watch_filesystems(Scope(disk_paths=("/", "/share/data")), machine, "win32")
    assert machine.queried == ["/"]


@pytest.mark.parametrize(
    "probe",
    [
        psutil_sources.process,
        psutil_sources.cpu,
        psutil_sources.load,
        psutil_sources.memory,
        psutil_sources.disk,
        psutil_sources.filesystem,
        psutil_sources.network,
    ],
)
def test_this_machine_through_the_real_psutil(probe: Any) -> None:
    try:
        collector = probe(Scope(pids=[os.getpid()]))
    except Absent as absent:
        pytest.skip(f"this machine: {absent}")
    sample(collector, 10.0)
    readings = sample(collector, 20.0)
    assert all(type(value) is float and value >= 0.0 for value in readings.values())
    assert all(
        value <= 100.0 for key, value in readings.items() if key.endswith("ercent") and "cpu" not in key
    )


def test_both_sources_of_this_machine_agree() -> None:
    ours = sample(psutil_sources.memory(Scope()), 1.0)
    assert ours["memory.usedMB"] == pytest.approx(
        (psutil.virtual_memory().total - psutil.virtual_memory().available) / MIB, rel=0.2
    )
