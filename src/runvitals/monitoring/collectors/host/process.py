"""CPU, memory, threads and storage traffic of the run's processes.

These are the attached processes and all their descendants.

Reading a process's CPU clock costs 1 µs. If it has not run since the last sample, nothing else has changed
either, and its files are not read. That makes a thousand waiting workers cheap.
"""

from __future__ import annotations

import os
import time

from runvitals.monitoring.collectors.base import MIB, PAGE, Absent, Every
from runvitals.monitoring.collectors.host.run_process import (
    DescriptorBudget,
    ProcessGone,
    ProcessUsage,
    has_process_clocks,
)
from runvitals.monitoring.collectors.plumbing.cgroup import available_cpu_count, locate
from runvitals.monitoring.collectors.plumbing.process_tree import ProcessTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope, Tick

LIMITS_EVERY_S = 60.0
# Threads, storage traffic and ended children: 14 µs a process, for at most this many processes at a time. New
# processes: 1 µs for each process that was started on the host; their use since their start counts when they
# are found.
FULL_EVERY_S = 2.0
FULL_READS_PER_SAMPLE = 32
# The kernel may reclaim memory of a sleeping process, so all are read once a minute, a few in each sample.
IDLE_EVERY_S = 60.0
INFINITY = float("inf")
NO_IO = "/proc/PID/io cannot be read: the processes are another user's, or the kernel does not count"
INCOMPLETE_IO = "incomplete: /proc/PID/io of some processes cannot be read, such as those of another user"
# Over shorter intervals the share of CPU time is noise. But the first two shares may be those of the first
# and the last sample of a short run, and clocks of processes count nanoseconds.
MIN_INTERVAL_S = 0.02
MIN_EARLY_S = 0.002
EARLY_SHARES = 2


def probe(scope: Scope) -> RunProcessUsage:
    """Make the collector; raise Absent if the machine lacks the source."""
    try:
        return RunProcessUsage(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class RunProcessUsage:
    """`cpu`, `proc.count`, `proc.cpu.threads`, `proc.memory.*`, `proc.io.*` of the run's process tree.

    Args:
        scope: its ``pids`` may grow; processes that have ended are dropped.
        proc: path of procfs. The PIDs in ``scope.pids`` are those of our namespace, so it is not under the
            host's root.
        excluded: a process that is left out (the monitor itself).
    """

    name = "process"

    def __init__(self, scope: Scope, proc: str = "/proc", excluded: int | None = None) -> None:
        self.absent: dict[str, str] = {}
        self._scope = scope
        self._proc = proc
        live = proc == "/proc"
        self._descriptors = DescriptorBudget() if live else None
        self._has_clocks = live and has_process_clocks()
        self._tree = ProcessTree(proc, os.getpid() if excluded is None else excluded)
        self._cgroup = locate(scope)
        self._limits = Every(LIMITS_EVERY_S)
        self._cpus = 1.0
        self._online_cpus = 1
        self._memory = self._cgroup.total_memory
        self._members: dict[int, ProcessUsage] = {}
        self._attached: tuple[int, ...] = ()
        self._ran_since: dict[int, ProcessUsage] = {}  # ran since their last full reading, oldest first
        self._full_turn = Every(FULL_EVERY_S)
        self._idle_turn = 0
        self._idle_owed = 0.0
        self._idle_since_s: float | None = None
        # Storage traffic of ended processes, minus the earlier traffic of processes attached later.
        self._gone_read = self._gone_written = 0
        self._has_io = self._lacks_io = False
        self._used_ns = 0
        self._early_shares = EARLY_SHARES if self._has_clocks else 0
        self._attach(first=True)
        self._mono_s: float | None = time.monotonic() if live else None

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if self._limits.due(tick.mono_s):
            self._read_limits()
        ran: list[ProcessUsage] = []
        gone: list[ProcessUsage] = []
        for member in self._members.values():
            try:
                used_ns = member.read_clock()
            except ProcessGone:
                gone.append(member)
                continue
            if used_ns:
                self._used_ns += used_ns
                ran.append(member)
        if gone:
            self._remove(gone)
        is_full = self._full_turn.due(tick.mono_s)
        if ran or is_full:
            self._read_files(ran, is_full, tick.mono_s)
        if is_full and self._scope.process_tree:
            newcomers = self._tree.newcomers(self._members, tick.mono_s)
            if newcomers:
                self._add_started(newcomers)
        if tuple(self._scope.pids) != self._attached:
            self._attach()
        self._write_cpu(tick)
        self._write_sums(tick, is_full)

    def _read_limits(self) -> None:
        self._online_cpus = os.cpu_count() or 1
        self._cpus = available_cpu_count(self._scope, self._cgroup)
        limit = self._cgroup.memory_limit()
        self._memory = limit.value if limit else self._cgroup.total_memory

    def _write_cpu(self, tick: Tick) -> None:
        before = self._mono_s
        shortest_s = MIN_EARLY_S if self._early_shares else MIN_INTERVAL_S
        if before is not None and tick.mono_s - before < shortest_s:
            return
        used_ns, self._used_ns = self._used_ns, 0
        self._mono_s = tick.mono_s
        if before is None or not self._members:
            return
        elapsed_s = tick.mono_s - before
        # A child that is reaped between reading it and reading its parent would count twice: limit to the
        # available CPU time.
        used_s = min(used_ns / 1e9, elapsed_s * self._online_cpus)
        tick.gauges["cpu"] = used_s * 100.0 / (elapsed_s * self._cpus)
        if self._early_shares:
            self._early_shares -= 1

    def _write_sums(self, tick: Tick, is_full: bool) -> None:
        read, written = self._gone_read, self._gone_written
        count = threads = pages = 0
        for member in self._members.values():
            read += member.read_bytes
            written += member.written_bytes
            pages += member.rss_pages
            if member.threads:  # a zombie has none
                count += 1
                threads += member.threads
        if is_full and self._has_io:
            tick.counters["proc.io.readMB"] = read / MIB
            tick.counters["proc.io.writeMB"] = written / MIB
        if count:
            gauges = tick.gauges
            resident = pages * PAGE
            gauges["proc.count"] = float(count)
            gauges["proc.memory.rssMB"] = resident / MIB
            if 0.0 < self._memory < INFINITY:
                gauges["proc.memory.percent"] = resident * 100.0 / self._memory
            if is_full:
                gauges["proc.cpu.threads"] = float(threads)

    def _read_files(self, ran: list[ProcessUsage], is_full: bool, mono_s: float) -> None:
        parents: list[ProcessUsage] = []
        for member in ran:
            self._ran_since[member.pid] = member
            if member.has_children:
                parents.append(member)
        if parents:
            # CPU time that a child used at its very end is only in its parent's stat, and belongs to this
            # interval.
            self._read_all(parents[:FULL_READS_PER_SAMPLE])
        if is_full:
            self._read_all(list(self._ran_since.values())[:FULL_READS_PER_SAMPLE])
            self._read_all(self._next_idle(mono_s))
        gone: list[ProcessUsage] = []
        for member in ran:
            if member.pid in self._ran_since:
                try:
                    member.read_memory()
                except ProcessGone:
                    gone.append(member)
        if gone:
            self._remove(gone)

    def _read_all(self, members: Sequence[ProcessUsage]) -> None:
        gone: list[ProcessUsage] = []
        for member in members:
            self._ran_since.pop(member.pid, None)
            try:
                self._used_ns += member.read_all()
            except ProcessGone:
                gone.append(member)
        if gone:
            self._remove(gone)

    def _next_idle(self, mono_s: float) -> list[ProcessUsage]:
        """As many members that each is read once a minute even if it sleeps."""
        if self._idle_since_s is not None:
            self._idle_owed += len(self._members) * (mono_s - self._idle_since_s) / IDLE_EVERY_S
        self._idle_since_s = mono_s
        count = min(int(self._idle_owed), len(self._members))
        if count <= 0:
            return []
        self._idle_owed -= count
        members = list(self._members.values())
        start = self._idle_turn % len(members)
        self._idle_turn = start + count
        return (members[start:] + members[:start])[:count]

    def _add_started(self, newcomers: Sequence[tuple[int, int]]) -> None:
        """Add the processes started since the last sample, including the CPU time used so far."""
        for pid, ppid in newcomers:
            member = self._add(pid, ppid, is_new=True)
            if member is not None:
                self._used_ns += member.cpu_ns + member.reaped_ns

    def _attach(self, first: bool = False) -> None:
        pids = tuple(self._scope.pids)
        new = [pid for pid in pids if pid not in self._attached]
        self._attached = pids
        self._limits = Every(LIMITS_EVERY_S)  # the new process may be bound to other CPUs
        started = [(pid, self._tree.parent_of(pid) or 0) for pid in new if pid not in self._members]
        if self._scope.process_tree:
            started += self._tree.descendants_of(new, self._members)
        for pid, ppid in started:
            member = self._add(pid, ppid, is_new=False)
            if member is not None and not first:
                self._gone_read -= member.read_bytes
                self._gone_written -= member.written_bytes

    def _add(self, pid: int, ppid: int, is_new: bool) -> ProcessUsage | None:
        try:
            member = ProcessUsage(self._proc, pid, ppid, is_new, self._descriptors, self._has_clocks)
        except ProcessGone:
            return None
        self._members[pid] = member
        self._has_io = self._has_io or member.has_io
        if not member.has_io and os.path.exists(f"{self._proc}/{pid}"):  # else it has just ended
            self._lacks_io = True
        if self._lacks_io:
            absent = {"proc.io": INCOMPLETE_IO if self._has_io else NO_IO}
            if absent != self.absent:
                self.absent = absent
        return member

    def _remove(self, gone: list[ProcessUsage]) -> None:
        """Remove ended processes, but keep their traffic.

        The nearest living ancestor gets the amount that was counted already: it is, or will be, in the
        ancestor's own counters too.
        """
        ended = {member.pid: member for member in gone}
        for member in gone:
            del self._members[member.pid]
            self._ran_since.pop(member.pid, None)
            member.close()
            self._gone_read += member.read_bytes
            self._gone_written += member.written_bytes
        for member in gone:
            parent = member.ppid
            while parent in ended:
                parent = ended[parent].ppid
            ancestor = self._members.get(parent)
            if ancestor is not None:
                ancestor.take_over(member)
