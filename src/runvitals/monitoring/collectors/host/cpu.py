"""CPU time of the whole host and of each core: /proc/stat.

The kernel counts, per core, ticks spent in user, nice, system, idle, iowait, irq, softirq and steal. All of
them except idle and iowait are busy; guest time is included in user. In a container the file shows the host.

The counts may jump: steal falls below 0 and wraps around, a container moves to another host, a core is
switched off. The reading that jumped is left out, and the next one is compared with the reading before the
jump, or if that is no longer possible, with the one that jumped.
"""

from __future__ import annotations

import os
import time

from runvitals.monitoring.collectors.base import TICKS_PER_SECOND, Absent, Every, PseudoFile, Tick
from runvitals.monitoring.collectors.plumbing.cgroup import available_cpus, locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope

# user nice system idle iowait irq softirq steal; guest times follow. Older kernels have fewer.
STATES = 8
MIN_STATES = 5
# Fewer ticks between two readings are noise: a single tick would be a jump of 33 % or more.
MIN_TICKS = 3
# Reading one core costs 0.7 µs. Above this number, all of them are read only in every 2nd, 3rd … sample.
CORES_A_SAMPLE = 64
AFFINITY_EVERY_S = 60.0
# Counts may be late by this much.
LATE_S = 10.0
# Assumed between two readings whose distance is not known.
MAX_INTERVAL_S = 1e9
# The total of a core that was not read yet: more than any other.
UNREAD = 1 << 80
JUMPED = "the kernel's counts of CPU time jumped: that reading is left out"


def probe(scope: Scope) -> Cpu:
    """Make the collector; raise Absent if the machine lacks the source."""
    try:
        return Cpu(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class Cpu:
    """The processors' time, in percent.

    `cpu.mean`, `cpu.user` … are of all the host's CPUs, `cpu.{i}.cpu_percent` of each core that we may use.

    The file is split into words at once. A core has the same place among them until another one is switched
    on or off, so the lines are looked for only then.

    Raises:
        OSError: the file cannot be read.
        Absent: it has no line with the times of all CPUs.
    """

    name = "cpu"

    def __init__(self, scope: Scope) -> None:
        self.absent: dict[str, str] = {}
        self._scope = scope
        self._cgroup = locate(scope)
        self._file = PseudoFile(scope.path("/proc/stat"))
        self._affinity = Every(AFFINITY_EVERY_S)
        self._cores_by_name: dict[bytes, CpuCore] = {}
        self._cores: list[CpuCore] = []  # the reported ones
        self._online = 1
        self._size = 0
        self._first = self._last = 0  # the words with the times of all CPUs; none: there is no such line
        self._end = 0  # the number of words up to the last of the cores' lines
        self._next_word = b""  # the word after them
        self._find_cores()
        if not self._last and not self._cores:
            raise Absent(f"{self._file.path} has no line with the times of the CPUs")
        words = self._read_words(max(self._end, self._last))
        # No tick has a time yet.
        self._total_s = began_s = None if scope.host_root else time.monotonic()
        self._total = self._total_of(words)
        # A reading of all CPUs that jumped after that.
        self._jumped: list[int] | None = None
        self._jumped_s: float | None = None
        self._cores_s = began_s
        self._has_jumped = False
        self._sample_cores(Tick(0.0), words)
        self._every = max(1, -(-len(self._cores) // CORES_A_SAMPLE))
        self._count = 0

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if self._affinity.due(tick.mono_s):
            self._find_cores()
        cores_are_due = self._count % self._every == 0
        self._count += 1
        words = self._read_words(self._end if cores_are_due and self._cores else self._last)
        if self._last:
            self._sample_total(tick, words)
        if cores_are_due:
            self._sample_cores(tick, words)
            self._cores_s = tick.mono_s

    def _read_words(self, count: int) -> list[bytes]:
        """Return the first words of the file, and after them what else was read.

        The whole file may be tens of kilobytes long on a host with many interrupts.
        """
        return os.pread(self._file.fd, self._size, 0).split(None, count)

    def _find_cores(self) -> None:
        """Find the line of all CPUs, and those of the cores that we may use.

        Other lines may follow, such as `intr`, or none.
        """
        allowed = available_cpus(self._scope, self._cgroup)
        absent: dict[str, str] = {}
        self._cores = []
        offset = size = self._end = self._first = self._last = self._online = 0
        for line in self._file.read().split(b"\n"):
            words = line.split()
            if offset == self._end:
                self._next_word = words[0] if words else b""
            name = words[0] if words else b""
            is_core = name.startswith(b"cpu") and name[3:].isdigit()
            if is_core or name == b"cpu":
                count = _count_times(words)
                if count < MIN_STATES:
                    absent[name.decode()] = f"its line in {self._file.path} is {line[:80]!r}"
                elif not is_core:
                    self._first, self._last = offset + 1, offset + 1 + count
                else:
                    self._online += 1
                    core = self._core(name)
                    if allowed is None or core.number in allowed:
                        core.offset, core.last = offset, offset + 1 + count
                        self._cores.append(core)
                        self._end = offset + len(words)
            elif self._last or self._online:
                break
            offset += len(words)
            size += len(line)
        self._size = 2 * size + 4096
        if not self._last and "cpu" not in absent:
            absent["cpu"] = f"{self._file.path} has no line with the times of all CPUs"
        if absent != self.absent:
            self.absent = absent

    def _core(self, name: bytes) -> CpuCore:
        core = self._cores_by_name.get(name)
        if core is None:
            core = self._cores_by_name[name] = CpuCore(name)
        return core

    def _total_of(self, words: Sequence[bytes]) -> list[int]:
        return list(map(int, words[self._first : self._last]))

    def _most_ticks(self, since_s: float | None, now_s: float) -> float:
        """More ticks than one CPU can have spent since a time."""
        return 2.0 * TICKS_PER_SECOND * (MAX_INTERVAL_S if since_s is None else now_s - since_s + LATE_S)

    def _sample_total(self, tick: Tick, words: Sequence[bytes]) -> None:
        now = self._total_of(words)
        spent = self._ticks_between(self._total, self._total_s, now, tick.mono_s)
        if spent is None and self._jumped is not None:
            spent = self._ticks_between(self._jumped, self._jumped_s, now, tick.mono_s)
        if spent is None:
            self._jumped, self._jumped_s = now, tick.mono_s
            self._report_jump(tick)
            return
        total = sum(spent)
        if total < MIN_TICKS * (self._online or 1):
            return
        self._total, self._total_s = now, tick.mono_s
        self._jumped = None
        _write_shares(tick.gauges, spent, total)

    def _ticks_between(
        self, before: Sequence[int], before_s: float | None, now: Sequence[int], now_s: float
    ) -> list[int] | None:
        """Return the ticks by state between two readings; None if the counts jumped."""
        spent = []
        total = fallen = 0
        for earlier, ticks in zip(before, now, strict=False):
            grown = ticks - earlier
            if grown < 0:
                # idle and iowait may decrease by some ticks (documented in the kernel); count this as 0.
                fallen -= grown
                grown = 0
            total += grown
            spent.append(grown)
        cpus = self._online or 1
        if fallen > total + TICKS_PER_SECOND * cpus or total > self._most_ticks(before_s, now_s) * cpus:
            return None
        return spent

    def _sample_cores(self, tick: Tick, words: Sequence[bytes]) -> None:
        following = words[self._end] if len(words) > self._end else b""
        if not following.startswith(self._next_word) or (following and not self._next_word):
            # Cores were switched on or off.
            self._find_cores()
            words = self._read_words(self._end)
        gauges = tick.gauges
        most = self._most_ticks(self._cores_s, tick.mono_s)
        for core in self._cores:
            offset = core.offset
            if len(words) < core.last or words[offset] != core.name:
                continue
            ticks = list(map(int, words[offset + 1 : core.last]))
            idle = ticks[3] + ticks[4]
            total = sum(ticks)
            elapsed = total - core.total
            if MIN_TICKS <= elapsed <= most and 0 <= idle - core.idle <= elapsed:
                gauges[core.key] = (elapsed - idle + core.idle) * 100.0 / elapsed
                core.total, core.idle, core.jumped = total, idle, ()
            else:
                self._sample_unusual(tick, core, total, idle)
        if len(self._cores) < self._online:
            sampled = [gauges[core.key] for core in self._cores if core.key in gauges]
            if sampled:
                gauges["cpu.ofAllowed"] = sum(sampled) / len(sampled)

    def _sample_unusual(self, tick: Tick, core: CpuCore, total: int, idle: int) -> None:
        """Sample a core for the first time, after too few ticks, or after a jump of its counts."""
        if core.total == UNREAD:
            core.total, core.idle = total, idle
            return
        most = self._most_ticks(self._cores_s, tick.mono_s)
        for before, idle_before in ((core.total, core.idle), *core.jumped):
            elapsed, idled = total - before, max(0, idle - idle_before)
            if -TICKS_PER_SECOND < elapsed < MIN_TICKS:
                return
            if MIN_TICKS <= elapsed <= most and idled <= elapsed:
                tick.gauges[core.key] = (elapsed - idled) * 100.0 / elapsed
                core.total, core.idle, core.jumped = total, idle, ()
                return
        core.jumped = ((total, idle),)
        self._report_jump(tick)

    def _report_jump(self, tick: Tick) -> None:
        if not self._has_jumped:
            self._has_jumped = True
            tick.events.append({"name": "counter_reset", "level": "info", "text": JUMPED})


class CpuCore:
    """A core's key, its place among the words of the file, and its ticks at the last reading.

    ``jumped`` has a reading after it whose counts had jumped.
    """

    __slots__ = ("idle", "jumped", "key", "last", "name", "number", "offset", "total")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.number = int(name[3:])
        self.key = f"cpu.{self.number}.cpu_percent"
        self.offset = self.last = 0
        self.total = UNREAD
        self.idle = 0
        self.jumped: tuple[tuple[int, int], ...] = ()


def _write_shares(gauges: dict[str, float], spent: list[int], total: int) -> None:
    user, nice, system, idle, iowait, irq, softirq, steal = (*spent, 0, 0, 0)[:STATES]
    share = 100.0 / total
    gauges["cpu.mean"] = (total - idle - iowait) * share
    gauges["cpu.user"] = (user + nice) * share
    gauges["cpu.system"] = (system + irq + softirq) * share
    gauges["cpu.iowait"] = iowait * share
    if len(spent) == STATES:
        gauges["cpu.steal"] = steal * share


def _count_times(words: Sequence[bytes]) -> int:
    """Count the numbers after the first word of a line, of the states that we know."""
    times = words[1 : 1 + STATES]
    return next((position for position, word in enumerate(times) if not word.isdigit()), len(times))
