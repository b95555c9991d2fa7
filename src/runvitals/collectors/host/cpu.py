"""CPU time of the whole host and of each core: /proc/stat.

The kernel counts, per core, ticks spent in user, nice, system, idle, iowait, irq, softirq and steal. Busy is
all of them but idle and iowait; guest time is already inside user. In a container the file shows the host.
"""

from __future__ import annotations

from runvitals.collectors.base import Absent, Every, PseudoFile
from runvitals.collectors.cgroup import available_cpus, locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Scope, Tick

# Fewer ticks than this between two readings say nothing: one tick would be a jump of 33 % or more.
MIN_TICKS = 3
# Reading one core costs 0.7 µs; beyond so many, all of them are read on every 2nd, 3rd … sample only.
CORES_A_SAMPLE = 64
AFFINITY_EVERY_S = 10.0


def probe(scope: Scope) -> Cpu:
    try:
        return Cpu(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class Cpu:
    """`cpu.mean`, `cpu.user` …: per cent of all the host's CPUs; `cpu.{i}.cpu_percent`: of each core that we
    may use.
    """

    name = "cpu"

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._cgroup = locate(scope)
        self._file = PseudoFile(scope.path("/proc/stat"))
        self._affinity = Every(AFFINITY_EVERY_S)
        self._allowed = available_cpus(scope, self._cgroup)
        lines = self._read_lines()
        self._total = _times(lines[0])
        self._cores = {line[0]: _busy_and_total(line) for line in map(bytes.split, lines[1:])}
        self._keys = {name: f"cpu.{name[3:].decode()}.cpu_percent" for name in self._cores}
        self._every = -(-len(self._wanted(lines)) // CORES_A_SAMPLE)
        self._count = 0

    def sample(self, tick: Tick) -> None:
        lines = self._read_lines()
        self._sample_total(tick, lines[0])
        if self._affinity.due(tick.mono_s):
            self._allowed = available_cpus(self._scope, self._cgroup)
        if self._count % self._every == 0:
            self._sample_cores(tick, self._wanted(lines))
        self._count += 1

    def _read_lines(self) -> list[bytes]:
        # What follows the CPUs' lines can be longer than they are, by tens of kilobytes on a host with many
        # interrupts.
        data = self._file.read()
        return data[: data.index(b"\nintr")].split(b"\n")

    def _wanted(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        if self._allowed is None or len(self._allowed) >= len(lines) - 1:
            return lines[1:]
        return [line for line in lines[1:] if int(line[3 : line.index(b" ")]) in self._allowed]

    def _sample_total(self, tick: Tick, line: bytes) -> None:
        now = _times(line)
        # iowait and idle may step back by a tick (the kernel says so); nothing ran backwards, so that is 0.
        user, nice, system, idle, iowait, irq, softirq, steal = [
            max(0, new - old) for new, old in zip(now, self._total, strict=True)
        ]
        total = user + nice + system + idle + iowait + irq + softirq + steal
        if total < MIN_TICKS * len(self._cores):
            return
        self._total = now
        share = 100.0 / total
        gauges = tick.gauges
        gauges["cpu.mean"] = (total - idle - iowait) * share
        gauges["cpu.user"] = (user + nice) * share
        gauges["cpu.system"] = (system + irq + softirq) * share
        gauges["cpu.iowait"] = iowait * share
        gauges["cpu.steal"] = steal * share

    def _sample_cores(self, tick: Tick, lines: Sequence[bytes]) -> None:
        for line in lines:
            fields = line.split()
            name = fields[0]
            busy, total = _busy_and_total(fields)
            before = self._cores.get(name)
            if before is None:  # a core that was switched on meanwhile
                self._cores[name] = busy, total
                self._keys[name] = f"cpu.{name[3:].decode()}.cpu_percent"
                continue
            elapsed = total - before[1]
            if elapsed < 0:  # off and on again: the kernel may start anew
                self._cores[name] = busy, total
            elif elapsed >= MIN_TICKS:
                self._cores[name] = busy, total
                tick.gauges[self._keys[name]] = min(100.0, max(0.0, (busy - before[0]) * 100.0 / elapsed))


def _times(line: bytes) -> list[int]:
    """user, nice, system, idle, iowait, irq, softirq, steal in ticks."""
    return [int(field) for field in line.split(None, 9)[1:9]]


def _busy_and_total(fields: Sequence[bytes]) -> tuple[int, int]:
    idle = int(fields[4]) + int(fields[5])
    busy = int(fields[1]) + int(fields[2]) + int(fields[3]) + int(fields[6]) + int(fields[7]) + int(fields[8])
    return busy, busy + idle
