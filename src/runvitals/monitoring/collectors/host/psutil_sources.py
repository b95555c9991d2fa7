"""The host's collectors on macOS and Windows, based on psutil. Keys are the same as on Linux.

Not available: cgroups, pressure, InfiniBand, ENA, energy, and on macOS the I/O of processes. Finding new
children requires listing all processes (5 to 20 ms), so it happens every 5 s. What a child used between the
last sample and its end is lost.
"""

from __future__ import annotations

import os
import sys
import time

from runvitals.monitoring.collectors.base import MIB, Absent, Every
from runvitals.monitoring.collectors.host.filesystem import Filesystem, watch
from runvitals.monitoring.collectors.plumbing.mounts import Mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from runvitals.monitoring.collectors.base import Scope, Tick

TREE_EVERY_S = 5.0
LOAD_EVERY_S = 5.0
# Over shorter intervals, a share of CPU time is noise.
MIN_INTERVAL_S = 0.02
# Windows has no load average. psutil computes one, which is 0 for the first seconds.
LOAD_AFTER_S = 6.0
# On macOS "/" is a read-only system volume. Users' data is on this one.
MAC_DATA_VOLUME = "/System/Volumes/Data"
NO_PSUTIL = "psutil could not be imported"
# Interfaces whose traffic stays on this machine, or passes through another interface as well.
INWARD = (
    *("lo", "Loopback", "utun", "awdl", "llw", "anpi", "ap", "bridge", "gif", "stf", "vmenet", "vEthernet"),
    *("veth", "docker", "br-", "ipsec", "tun", "tap", "isatap", "Teredo"),
)


def psutil_or_absent() -> ModuleType:
    """Import psutil, a dependency of runvitals on all systems but Linux."""
    try:
        import psutil
    except ImportError as error:
        raise Absent(f"{NO_PSUTIL}: {error}") from error
    return psutil


def process(scope: Scope) -> PsutilProcesses:
    """Make the collector, from psutil."""
    return PsutilProcesses(scope, psutil_or_absent())


def cpu(scope: Scope) -> PsutilCpu:
    """Make the collector, from psutil."""
    return PsutilCpu(psutil_or_absent())


def load(scope: Scope) -> PsutilLoad:
    """Make the collector, from psutil."""
    return PsutilLoad(psutil_or_absent(), sys.platform)


def memory(scope: Scope) -> PsutilMemory:
    """Make the collector, from psutil."""
    return PsutilMemory(psutil_or_absent())


def disk(scope: Scope) -> PsutilDisk:
    """Make the collector, from psutil."""
    collector = PsutilDisk(psutil_or_absent())
    if collector.read() is None:
        raise Absent("the system does not count disk traffic (on Windows, enable it with `diskperf -y`)")
    return collector


def filesystem(scope: Scope) -> Filesystem:
    """Make the collector, from psutil."""
    return watch_filesystems(scope, psutil_or_absent(), sys.platform)


def network(scope: Scope) -> PsutilNetwork:
    """Make the collector, from psutil."""
    return PsutilNetwork(psutil_or_absent())


class PsutilProcesses:
    """`cpu`, `proc.count`, `proc.cpu.threads`, `proc.memory.*`, and `proc.io.*` where the system has it."""

    name = "process"

    def __init__(self, scope: Scope, psutil: ModuleType) -> None:
        self._scope = scope
        self._psutil = psutil
        self._total_memory = psutil.virtual_memory().total
        self._cpus = psutil.cpu_count() or 1
        self._tree = Every(TREE_EVERY_S)
        self._members: dict[int, PsutilProcess] = {}
        self._attached: tuple[int, ...] = ()
        self._gone_read = self._gone_written = 0
        self._used_s = 0.0
        self._mono_s: float | None = None

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        due = self._tree.due(tick.mono_s)
        if due or tuple(self._scope.pids) != self._attached:
            self._find_members()
        for pid, member in list(self._members.items()):
            try:
                self._used_s += member.read()
            except self._psutil.NoSuchProcess:
                self._gone_read += member.read_bytes
                self._gone_written += member.written_bytes
                del self._members[pid]
        if self._members:
            self._write(tick)

    def _write(self, tick: Tick) -> None:
        members = list(self._members.values())
        gauges = tick.gauges
        elapsed_s = tick.mono_s - self._mono_s if self._mono_s is not None else 0.0
        if elapsed_s >= MIN_INTERVAL_S:
            gauges["cpu"] = self._used_s * 100.0 / (elapsed_s * self._cpus)
        if elapsed_s >= MIN_INTERVAL_S or self._mono_s is None:
            self._used_s, self._mono_s = 0.0, tick.mono_s
        resident = sum(member.resident for member in members)
        gauges["proc.count"] = float(len(members))
        gauges["proc.cpu.threads"] = float(sum(member.threads for member in members))
        gauges["proc.memory.rssMB"] = resident / MIB
        gauges["proc.memory.percent"] = resident * 100.0 / self._total_memory
        if any(member.has_io for member in members):
            read = self._gone_read + sum(member.read_bytes for member in members)
            written = self._gone_written + sum(member.written_bytes for member in members)
            tick.counters["proc.io.readMB"] = read / MIB
            tick.counters["proc.io.writeMB"] = written / MIB

    def _find_members(self) -> None:
        new = [pid for pid in self._scope.pids if pid not in self._attached]
        self._attached = tuple(self._scope.pids)
        # Descendants of any member, so that a grandchild stays in the tree when its parent ends.
        for pid in [*new, *self._members]:
            try:
                processes = [self._psutil.Process(pid)]
                if self._scope.process_tree:
                    processes += processes[0].children(recursive=True)
            except self._psutil.NoSuchProcess:
                continue
            for process in processes:
                if process.pid not in self._members and process.pid != os.getpid():
                    self._members[process.pid] = PsutilProcess(process, self._psutil)


class PsutilProcess:
    """One process. CPU time that it used before it was found does not count."""

    __slots__ = (
        "_process",
        "_psutil",
        "_used_s",
        "has_io",
        "read_bytes",
        "resident",
        "threads",
        "written_bytes",
    )

    def __init__(self, process: Any, psutil: ModuleType) -> None:
        self._process = process
        self._psutil = psutil
        self._used_s: float | None = None
        self.resident = self.threads = self.read_bytes = self.written_bytes = 0
        self.has_io = hasattr(process, "io_counters")

    def read(self) -> float:
        """CPU time used since the last call, in seconds; 0 if another user's process cannot be read.

        Raises:
            psutil.NoSuchProcess: it has ended.
        """
        try:
            with self._process.oneshot():
                times = self._process.cpu_times()
                self.resident = self._process.memory_info().rss
                self.threads = self._process.num_threads()
                if self.has_io:
                    io = self._process.io_counters()
                    self.read_bytes, self.written_bytes = io.read_bytes, io.write_bytes
        except self._psutil.AccessDenied:
            return 0.0
        now = times.user + times.system
        used = now - self._used_s if self._used_s is not None else 0.0
        self._used_s = now
        return max(0.0, used)


class PsutilCpu:
    """The processors' time, in percent.

    `cpu.mean`, `cpu.user`, `cpu.system`, `cpu.{i}.cpu_percent`; `cpu.iowait` and `cpu.steal` where they
    exist.
    """

    name = "cpu"

    def __init__(self, psutil: ModuleType) -> None:
        self._psutil = psutil
        self._total = psutil.cpu_times()
        self._cores = psutil.cpu_times(percpu=True)
        self._mono_s: float | None = None

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if self._mono_s is not None and tick.mono_s - self._mono_s < MIN_INTERVAL_S:
            return
        self._mono_s = tick.mono_s
        total, cores = self._psutil.cpu_times(), self._psutil.cpu_times(percpu=True)
        self._sample_total(tick, total)
        for index, (now, before) in enumerate(zip(cores, self._cores, strict=False)):
            spent = spent_times(now, before)
            elapsed = sum(spent.values())
            if elapsed > 0.0:
                tick.gauges[f"cpu.{index}.cpu_percent"] = busy(spent) * 100.0 / elapsed
        self._total, self._cores = total, cores

    def _sample_total(self, tick: Tick, total: Any) -> None:
        spent = spent_times(total, self._total)
        elapsed = sum(spent.values())
        if elapsed <= 0.0:
            return
        share = 100.0 / elapsed
        gauges = tick.gauges
        gauges["cpu.mean"] = busy(spent) * share
        gauges["cpu.user"] = (spent["user"] + spent.get("nice", 0.0)) * share
        gauges["cpu.system"] = sum(spent.get(name, 0.0) for name in ("system", "irq", "softirq")) * share
        for name in ("iowait", "steal"):
            if name in spent:
                gauges[f"cpu.{name}"] = spent[name] * share


def spent_times(now: Any, before: Any) -> dict[str, float]:
    """Seconds spent in each state between two results of psutil.cpu_times. States differ by system.

    Windows' interrupt and DPC times are included in system time, guest times in user time.
    """
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return {
        name: max(0.0, getattr(now, name) - getattr(before, name)) for name in names if hasattr(now, name)
    }


def busy(spent: dict[str, float]) -> float:
    """Return all time except idle and iowait."""
    return sum(spent.values()) - spent["idle"] - spent.get("iowait", 0.0)


class PsutilLoad:
    """`system.load1`, `5`, `15`, `system.uptime`; every 5 s."""

    name = "load"

    def __init__(self, psutil: ModuleType, platform: str) -> None:
        self._psutil = psutil
        self._every = Every(LOAD_EVERY_S)
        self._wait_s = LOAD_AFTER_S if platform == "win32" else 0.0
        self._began_s: float | None = None
        psutil.getloadavg()  # on Windows the first call starts the computation

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if not self._every.due(tick.mono_s):
            return
        if self._began_s is None:
            self._began_s = tick.mono_s
        gauges = tick.gauges
        gauges["system.uptime"] = time.time() - self._psutil.boot_time()
        if tick.mono_s - self._began_s >= self._wait_s:
            one_minute, five, fifteen = self._psutil.getloadavg()
            gauges["system.load1"] = float(one_minute)
            gauges["system.load5"] = float(five)
            gauges["system.load15"] = float(fifteen)


class PsutilMemory:
    """The memory of the host: `memory_percent`, `memory.usedMB`, `proc.memory.availableMB`, `swap.used`."""

    name = "memory"

    def __init__(self, psutil: ModuleType) -> None:
        self._psutil = psutil

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        gauges = tick.gauges
        memory, swap = self._psutil.virtual_memory(), self._psutil.swap_memory()
        used = memory.total - memory.available
        gauges["memory_percent"] = gauges["host.memory_percent"] = used * 100.0 / memory.total
        gauges["memory.usedMB"] = used / MIB
        gauges["proc.memory.availableMB"] = memory.available / MIB
        if hasattr(memory, "cached"):
            gauges["memory.cachedMB"] = (memory.cached + memory.buffers) / MIB
        if swap.total:
            gauges["swap.used"] = float(swap.used)
            gauges["swap.used_percent"] = swap.used * 100.0 / swap.total


class PsutilDisk:
    """`disk.in`, `disk.out` (MiB, all disks) and of each disk `.in`, `.out`, `.readOps`, `.writeOps`."""

    name = "disk"

    def __init__(self, psutil: ModuleType) -> None:
        self._psutil = psutil

    def read(self) -> dict[str, Any] | None:
        """Read the counters of each disk."""
        # nowrap=False: psutil's correction of counters costs a lock and a cache; readers detect resets
        # anyway.
        counters: dict[str, Any] | None = self._psutil.disk_io_counters(perdisk=True, nowrap=False)
        return counters or None

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        disks = self.read()
        if disks is None:
            return
        counters = tick.counters
        counters["disk.in"] = sum(disk.read_bytes for disk in disks.values()) / MIB
        counters["disk.out"] = sum(disk.write_bytes for disk in disks.values()) / MIB
        for name, disk in disks.items():
            counters[f"disk.{name}.in"] = disk.read_bytes / MIB
            counters[f"disk.{name}.out"] = disk.write_bytes / MIB
            counters[f"disk.{name}.readOps"] = float(disk.read_count)
            counters[f"disk.{name}.writeOps"] = float(disk.write_count)


class PsutilNetwork:
    """`network.sent`, `network.recv` (bytes), and of each interface `.sent`, `.recv`, `.errors`, `.drops`."""

    name = "network"

    def __init__(self, psutil: ModuleType) -> None:
        self._psutil = psutil

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        interfaces = self._psutil.net_io_counters(pernic=True, nowrap=False)
        counters = tick.counters
        sent = recv = 0
        for name, nic in interfaces.items():
            # Windows and macOS list dozens of interfaces that never carry traffic.
            if name.startswith(INWARD) or not nic.bytes_sent + nic.bytes_recv:
                continue
            sent += nic.bytes_sent
            recv += nic.bytes_recv
            counters[f"network.{name}.sent"] = float(nic.bytes_sent)
            counters[f"network.{name}.recv"] = float(nic.bytes_recv)
            counters[f"network.{name}.errors"] = float(nic.errin + nic.errout)
            counters[f"network.{name}.drops"] = float(nic.dropin + nic.dropout)
        counters["network.sent"] = float(sent)
        counters["network.recv"] = float(recv)


def watch_filesystems(scope: Scope, psutil: ModuleType, platform: str) -> Filesystem:
    """Space of the configured paths; network drives are read in a separate thread, as on Linux."""

    def space(path: str) -> PsutilFilesystem:
        return PsutilFilesystem(
            psutil.disk_usage(MAC_DATA_VOLUME if platform == "darwin" and path == "/" else path)
        )

    mounts = []
    for partition in psutil.disk_partitions(all=True):
        # On Windows, the options mark a network drive; its type is that of the server's file system.
        kind = "cifs" if "remote" in partition.opts.split(",") else partition.fstype
        mounts.append(Mount("/", partition.mountpoint.replace("\\", "/"), kind, partition.opts))
    return watch(scope, space, mounts)


class PsutilFilesystem:
    """psutil's disk usage with the attributes of statvfs: blocks of one byte, no inodes."""

    __slots__ = ("f_bavail", "f_bfree", "f_blocks", "f_ffree", "f_files", "f_frsize")

    def __init__(self, usage: Any) -> None:
        self.f_frsize = 1
        self.f_blocks: int = usage.total
        self.f_bfree: int = usage.total - usage.used
        self.f_bavail: int = usage.free
        self.f_files = self.f_ffree = 0
