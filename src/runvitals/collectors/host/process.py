"""The run's processes: CPU, memory, threads and storage traffic of the attached ones and all their
descendants.

Asking a process's CPU clock costs 1 µs. One that has not run since the last sample has not changed anything
else either, so its files are not read again. That is what makes a thousand waiting workers cheap.
"""

from __future__ import annotations

import os
import time
from _operator import attrgetter

from runvitals.collectors.base import MIB, PAGE, Absent, Every
from runvitals.collectors.host.run_process import Descriptors, Gone, Member, has_process_clocks
from runvitals.collectors.plumbing.cgroup import available_cpu_count, locate
from runvitals.collectors.plumbing.process_tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Scope, Tick

LIMITS_EVERY_S = 60.0
# Threads, storage traffic and ended children: 14 µs a process, of at most so many processes each time.
BOOKS_EVERY_S = 2.0
BOOKS_A_SAMPLE = 32
# The kernel may take memory from a process that sleeps, so all are read once a minute, a few in each sample.
IDLE_EVERY_S = 60.0
# Sums over a thousand members are made by C code: 0.05 µs a member each.
THREADS = attrgetter("threads")
RSS_PAGES = attrgetter("rss_pages")
READ_BYTES = attrgetter("read_bytes")
WRITTEN_BYTES = attrgetter("written_bytes")
INFINITY = float("inf")
# Over a shorter interval than this the share of CPU time is noise.
SHORTEST_S = 0.02


def probe(scope: Scope) -> Processes:
    try:
        return Processes(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class Processes:
    """`cpu`, `proc.count`, `proc.cpu.threads`, `proc.memory.*`, `proc.io.*` of the run's process tree.

    Args:
        scope: its ``pids`` may grow while we run; those that have ended are dropped.
        proc: where procfs lies. The ids in ``scope.pids`` are our own, so this is not the host's root's.
        excluded: the process that never counts (the monitor itself).
    """

    name = "process"

    def __init__(self, scope: Scope, proc: str = "/proc", excluded: int | None = None) -> None:
        self._scope = scope
        self._proc = proc
        live = proc == "/proc"
        self._descriptors = Descriptors() if live else None
        self._clocked = live and has_process_clocks()
        self._tree = Tree(proc, os.getpid() if excluded is None else excluded)
        self._cgroup = locate(scope)
        self._limits = Every(LIMITS_EVERY_S)
        self._cpus = 1.0
        self._online_cpus = 1
        self._memory = self._cgroup.total_memory
        self._members: dict[int, Member] = {}
        self._attached: tuple[int, ...] = ()
        self._behind: dict[int, Member] = {}  # they ran since their books were read, the longest ago first
        self._books = Every(BOOKS_EVERY_S)
        self._idle_turn = 0
        self._idle_owed = 0.0
        self._idle_since_s: float | None = None
        # Storage traffic of those that have ended, less what later ones had behind them when they were
        # attached.
        self._gone_read = self._gone_written = 0
        self._tells_io = False
        self._used_ns = 0
        self._attach(first=True)
        self._mono_s: float | None = time.monotonic() if live else None

    def sample(self, tick: Tick) -> None:
        if self._limits.due(tick.mono_s):
            self._look_up_limits()
        ran: list[Member] = []
        gone: list[Member] = []
        for member in self._members.values():
            try:
                used_ns = member.read_clock()
            except Gone:
                gone.append(member)
                continue
            if used_ns:
                self._used_ns += used_ns
                ran.append(member)
        if gone:
            self._bury(gone)
        books = self._books.due(tick.mono_s)
        if ran or books:
            self._read_files(ran, books, tick.mono_s)
        if self._scope.process_tree:
            newcomers = self._tree.newcomers(self._members, tick.mono_s)
            if newcomers:
                self._welcome(newcomers)
        if tuple(self._scope.pids) != self._attached:
            self._attach()
        self._write_cpu(tick)
        self._write_sums(tick, books)

    def _look_up_limits(self) -> None:
        self._online_cpus = os.cpu_count() or 1
        self._cpus = available_cpu_count(self._scope, self._cgroup)
        limit = self._cgroup.memory_limit()
        self._memory = limit.value if limit else self._cgroup.total_memory

    def _write_cpu(self, tick: Tick) -> None:
        before = self._mono_s
        if before is not None and tick.mono_s - before < SHORTEST_S:
            return
        used_ns, self._used_ns = self._used_ns, 0
        self._mono_s = tick.mono_s
        if before is None or not self._members:
            return
        elapsed_s = tick.mono_s - before
        # A child waited for between our look at it and at its parent would count twice for once: no more than
        # there is.
        used_s = min(used_ns / 1e9, elapsed_s * self._online_cpus)
        tick.gauges["cpu"] = used_s * 100.0 / (elapsed_s * self._cpus)

    def _write_sums(self, tick: Tick, books: bool) -> None:
        members = self._members.values()
        if books and self._tells_io:
            tick.counters["proc.io.readMB"] = (self._gone_read + sum(map(READ_BYTES, members))) / MIB
            tick.counters["proc.io.writeMB"] = (self._gone_written + sum(map(WRITTEN_BYTES, members))) / MIB
        threads = [count for count in map(THREADS, members) if count]  # a zombie has none
        if threads:
            gauges = tick.gauges
            resident = sum(map(RSS_PAGES, members)) * PAGE
            gauges["proc.count"] = float(len(threads))
            gauges["proc.memory.rssMB"] = resident / MIB
            if self._memory != INFINITY:
                gauges["proc.memory.percent"] = resident * 100.0 / self._memory
            if books:
                gauges["proc.cpu.threads"] = float(sum(threads))

    def _read_files(self, ran: list[Member], books: bool, mono_s: float) -> None:
        breeding: list[Member] = []
        for member in ran:
            self._behind[member.pid] = member
            if member.breeds:
                breeding.append(member)
        if breeding:
            # What a child used at its very end is in its parent's books alone, and belongs to this interval.
            self._read_books(breeding[:BOOKS_A_SAMPLE])
        if books:
            self._read_books(list(self._behind.values())[:BOOKS_A_SAMPLE])
            self._read_books(self._idle_ones(mono_s))
        gone: list[Member] = []
        for member in ran:
            if member.pid in self._behind:
                try:
                    member.read_memory()
                except Gone:
                    gone.append(member)
        if gone:
            self._bury(gone)

    def _read_books(self, members: Sequence[Member]) -> None:
        gone: list[Member] = []
        for member in members:
            self._behind.pop(member.pid, None)
            try:
                self._used_ns += member.read_books()
            except Gone:
                gone.append(member)
        if gone:
            self._bury(gone)

    def _idle_ones(self, mono_s: float) -> list[Member]:
        """So many of all members that each is read once a minute even if it sleeps."""
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

    def _welcome(self, newcomers: Sequence[tuple[int, int]]) -> None:
        """Take in the processes started since the last sample, with the CPU time they have used so far."""
        for pid, ppid in newcomers:
            member = self._add(pid, ppid, born=True)
            if member is not None:
                self._used_ns += member.cpu_ns + member.reaped_ns

    def _attach(self, first: bool = False) -> None:
        pids = tuple(self._scope.pids)
        new = [pid for pid in pids if pid not in self._attached]
        self._attached = pids
        self._limits = Every(LIMITS_EVERY_S)  # this one may be bound to other CPUs
        found = [(pid, self._tree.parent_of(pid) or 0) for pid in new if pid not in self._members]
        if self._scope.process_tree:
            found += self._tree.descendants_of(new, self._members)
        for pid, ppid in found:
            member = self._add(pid, ppid, born=False)
            if member is not None and not first:
                self._gone_read -= member.read_bytes
                self._gone_written -= member.written_bytes

    def _add(self, pid: int, ppid: int, born: bool) -> Member | None:
        try:
            member = Member(self._proc, pid, ppid, born, self._descriptors, self._clocked)
        except Gone:
            return None
        self._members[pid] = member
        self._tells_io = self._tells_io or member.tells_io
        return member

    def _bury(self, gone: list[Member]) -> None:
        """Keep what the ended ones had, and tell the nearest living ancestor, whose books it is (or soon will
        be) in as well.
        """
        ended = {member.pid: member for member in gone}
        for member in gone:
            del self._members[member.pid]
            self._behind.pop(member.pid, None)
            member.close()
            self._gone_read += member.read_bytes
            self._gone_written += member.written_bytes
        for member in gone:
            above = member.ppid
            while above in ended:
                above = ended[above].ppid
            heir = self._members.get(above)
            if heir is not None:
                heir.owe(member)
