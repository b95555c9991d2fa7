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
    """

    name = "cpu"

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._cgroup = locate(scope)
        self._file = PseudoFile(scope.path("/proc/stat"))
        self._size = 4096
        self._affinity = Every(AFFINITY_EVERY_S)
        self._allowed = available_cpus(scope, self._cgroup)
        lines = self._read_lines()
        self._total = _times(lines[0])
        self._cores: dict[bytes, CpuCore] = {}
        self._sample_cores(Tick(0.0), lines[1:])
        self._every = -(-len(self._wanted(lines)) // CORES_A_SAMPLE)
        self._count = 0

    def sample(self, tick: Tick) -> None:
        lines = self._read_lines()
        self._sample_total(tick, lines[0])
        if self._affinity.due(tick.mono_s):
            self._allowed = available_cpus(self._scope, self._cgroup)
        if self._count % self._every == 0:
            self._sample_cores(tick, lines[1:] if self._allowed is None else self._wanted(lines))
        self._count += 1

    def _read_lines(self) -> list[bytes]:
        # The CPUs' lines come first. The rest may be tens of kilobytes longer on a host with many interrupts,
        # and is not read.
        data = os.pread(self._file.fd, self._size, 0)
        end = data.find(b"\nintr")
        if end < 0:
            data = self._file.read()
            end = data.index(b"\nintr")
            self._size = 2 * end + 4096
        return data[:end].split(b"\n")

    def _wanted(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        if self._allowed is None or len(self._allowed) >= len(lines) - 1:
            return lines[1:]
        return [line for line in lines[1:] if int(line[3 : line.index(b" ")]) in self._allowed]

    def _sample_total(self, tick: Tick, line: bytes) -> None:
        now = _times(line)
        # idle and iowait may decrease by a tick (documented in the kernel); count this as 0.
        spent = []
        for new, old in zip(now, self._total, strict=True):
            spent.append(new - old if new > old else 0)
        total = sum(spent)
        if total < MIN_TICKS * len(self._cores):
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

    def _sample_cores(self, tick: Tick, lines: Sequence[bytes]) -> None:
        gauges, cores = tick.gauges, self._cores
        for line in lines:
            name, user, nice, system, idling, waiting, irq, softirq, steal = line.split(None, 9)[:9]
            idle = int(idling) + int(waiting)
            total = idle + int(user) + int(nice) + int(system) + int(irq) + int(softirq) + int(steal)
            core = cores.get(name)
            if core is None:  # switched on since
                cores[name] = CpuCore(name, total, idle)
                continue
            elapsed = total - core.total
            if elapsed >= MIN_TICKS:
                busy = elapsed - (idle - core.idle)
                gauges[core.key] = min(100.0, max(0.0, busy * 100.0 / elapsed))
            elif elapsed >= 0:
                continue
            core.total, core.idle = total, idle  # even if lower: a core that was off counts from 0


class CpuCore:
    """A core's key and its ticks at the last reading."""

    __slots__ = ("idle", "key", "total")

    def __init__(self, name: bytes, total: int, idle: int) -> None:
        self.key = f"cpu.{name[3:].decode()}.cpu_percent"
        self.total = total
        self.idle = idle


def _times(line: bytes) -> list[int]:
    """user, nice, system, idle, iowait, irq, softirq, steal in ticks."""
    return list(map(int, line.split(None, 9)[1:9]))
