"""CPU time of the whole host and of each core: /proc/stat.

The kernel counts, per core, ticks spent in user, nice, system, idle, iowait, irq, softirq and steal. All of
them except idle and iowait are busy; guest time is included in user. In a container the file shows the host.
"""

from __future__ import annotations

import os

from runvitals.collectors.base import Absent, Every, PseudoFile, Tick
from runvitals.collectors.plumbing.cgroup import available_cpus, locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Scope

# Fewer ticks between two readings are noise: a single tick would be a jump of 33 % or more.
MIN_TICKS = 3
# Reading one core costs 0.7 µs. Above this number, all of them are read only in every 2nd, 3rd … sample.
CORES_A_SAMPLE = 64
AFFINITY_EVERY_S = 60.0


def probe(scope: Scope) -> Cpu:
    try:
        return Cpu(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class Cpu:
    """`cpu.mean`, `cpu.user` …: percent of all the host's CPUs; `cpu.{i}.cpu_percent`: of each core that we
    may use.

    The file is split into words at once. A core has the same place among them until another one is switched
    on or off, so the lines are looked for only then.
    """

    name = "cpu"

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._cgroup = locate(scope)
        self._file = PseudoFile(scope.path("/proc/stat"))
        self._affinity = Every(AFFINITY_EVERY_S)
        self._known: dict[bytes, CpuCore] = {}
        self._cores: list[CpuCore] = []  # the reported ones
        self._size = 0
        self._end = 0  # the number of words up to the last of their lines
        self._next_word = b""  # the word after them
        self._find_cores()
        words = self._read_words(max(self._end, 9))
        self._total = [int(word) for word in words[1:9]]
        self._sample_cores(Tick(0.0), words)
        self._every = -(-len(self._cores) // CORES_A_SAMPLE)
        self._count = 0

    def sample(self, tick: Tick) -> None:
        if self._affinity.due(tick.mono_s):
            self._find_cores()
        cores_are_due = self._count % self._every == 0
        self._count += 1
        words = self._read_words(self._end if cores_are_due and self._cores else 9)
        self._sample_total(tick, words)
        if cores_are_due:
            self._sample_cores(tick, words)

    def _read_words(self, count: int) -> list[bytes]:
        """The first words of the file, and after them what else was read. The whole file may be tens of
        kilobytes long on a host with many interrupts.
        """
        return os.pread(self._file.fd, self._size, 0).split(None, count)

    def _find_cores(self) -> None:
        """Find the lines of the cores that we may use."""
        allowed = available_cpus(self._scope, self._cgroup)
        data = self._file.read()
        end = data.index(b"\nintr")
        self._size = 2 * end + 4096
        self._cores = []
        place = self._end = 0
        for line in data[: end + 5].split(b"\n"):
            words = line.split()
            if place == self._end:
                self._next_word = words[0]
            if len(words) > 1 and words[0] != b"cpu":
                core = self._core(words[0])
                if allowed is None or core.number in allowed:
                    core.place = place
                    self._cores.append(core)
                    self._end = place + len(words)
            place += len(words)

    def _core(self, name: bytes) -> CpuCore:
        core = self._known.get(name)
        if core is None:
            core = self._known[name] = CpuCore(name)
        return core

    def _sample_total(self, tick: Tick, words: Sequence[bytes]) -> None:
        now: list[int] = []
        spent: list[int] = []
        total = 0
        for before in self._total:
            ticks = int(words[len(now) + 1])
            # idle and iowait may decrease by a tick (documented in the kernel); count this as 0.
            grown = ticks - before if ticks > before else 0
            now.append(ticks)
            spent.append(grown)
            total += grown
        if total < MIN_TICKS * len(self._known):
            return
        self._total = now
        user, nice, system, idle, iowait, irq, softirq, steal = spent
        share = 100.0 / total
        gauges = tick.gauges
        gauges["cpu.mean"] = (total - idle - iowait) * share
        gauges["cpu.user"] = (user + nice) * share
        gauges["cpu.system"] = (system + irq + softirq) * share
        gauges["cpu.iowait"] = iowait * share
        gauges["cpu.steal"] = steal * share

    def _sample_cores(self, tick: Tick, words: Sequence[bytes]) -> None:
        if len(words) <= self._end or not words[self._end].startswith(self._next_word):
            # Cores were switched on or off.
            self._find_cores()
            words = self._read_words(self._end)
        gauges = tick.gauges
        for core in self._cores:
            place = core.place
            if words[place] != core.name:
                continue
            user, nice, system, idling, waiting, irq, softirq, steal = words[place + 1 : place + 9]
            idle = int(idling) + int(waiting)
            total = idle + int(user) + int(nice) + int(system) + int(irq) + int(softirq) + int(steal)
            elapsed = total - core.total
            if core.total < 0:
                pass
            elif elapsed >= MIN_TICKS:
                busy = elapsed - (idle - core.idle)
                gauges[core.key] = min(100.0, max(0.0, busy * 100.0 / elapsed))
            elif elapsed >= 0:
                continue
            core.total, core.idle = total, idle  # even if lower: a core that was off counts from 0


class CpuCore:
    """A core's key, its place among the words of the file, and its ticks at the last reading (-1: none)."""

    __slots__ = ("idle", "key", "name", "number", "place", "total")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.number = int(name[3:])
        self.key = f"cpu.{self.number}.cpu_percent"
        self.place = 0
        self.total = -1
        self.idle = 0
