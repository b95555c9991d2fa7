"""Pressure stall information (PSI): how much of the time tasks waited for CPU, memory or storage.

``some`` is the share of time in which at least one task waited, ``full`` in which all of them did. The files
of our cgroup cover the run, those in /proc/pressure the whole host.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent, PseudoFile, open_if_there
from runvitals.monitoring.collectors.plumbing.cgroup import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick

ENDS = ("pressureAvg10", "pressureFullAvg10", "pressureSeconds")
WITHOUT_PSI = "the kernel was built or started without PSI"


def probe(scope: Scope) -> Pressure:
    """Make the collector; raise Absent if the machine lacks the source."""
    pressure = Pressure(scope)
    if not pressure.resources:
        raise Absent(f"{scope.path('/proc/pressure')} cannot be read: {WITHOUT_PSI}")
    return pressure


class Pressure:
    """The time that tasks waited for processors, memory and disks.

    `cpu.pressureAvg10`, `memory.pressureAvg10`, `memory.pressureFullAvg10`, `io.…` (%), and
    `….pressureSeconds` (counters).
    """

    name = "pressure"
    every_s = 10.0  # the averages are over 10 s, and the counters miss nothing in between

    def __init__(self, scope: Scope) -> None:
        own = locate(scope).pressure
        self.absent: dict[str, str] = {}
        self.resources: list[PressureFile] = []
        for resource in ("cpu", "memory", "io"):
            file = open_if_there(f"{own.own}/{resource}.pressure") if own is not None else None
            file = file or open_if_there(scope.path(f"/proc/pressure/{resource}"))
            if file is not None:
                self.resources.append(PressureFile(resource, file))
            else:
                keys = (f"{resource}.{end}" for end in ENDS)
                self.absent.update(
                    dict.fromkeys(keys, f"neither the cgroup nor the host has {resource}.pressure")
                )
        self._never = self.absent

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        absent = dict(self._never)
        for resource in self.resources:
            absent.update(resource.sample(tick))
        if absent != self.absent:
            self.absent = absent


class PressureFile:
    """One pressure file. A read takes 4 µs."""

    __slots__ = ("_file", "_full", "_resource", "_seconds", "_some")

    def __init__(self, resource: str, file: PseudoFile) -> None:
        self._file = file
        self._resource = resource
        self._some = f"{resource}.pressureAvg10"
        # `full` is meaningless for the CPU of a host; newer kernels write 0.
        self._full = f"{resource}.pressureFullAvg10" if resource != "cpu" else ""
        self._seconds = f"{resource}.pressureSeconds"

    def sample(self, tick: Tick) -> dict[str, str]:
        """Write the values. Returns the keys without one, and why."""
        # some avg10=0.12 avg60=0.05 avg300=0.01 total=12345 (µs)
        # full avg10=…
        try:
            words = self._file.read().split()
        except OSError as error:  # switched off for this cgroup, which may be temporary
            why = f"{self._file.path}: {error.strerror}"
            return {f"{self._resource}.{end}": why for end in ENDS}
        if len(words) <= 4:
            return {f"{self._resource}.{end}": f"{self._file.path} has no values" for end in ENDS}
        tick.gauges[self._some] = float(words[1][6:])
        tick.counters[self._seconds] = int(words[4][6:]) / 1e6
        if not self._full:
            return {}
        if len(words) <= 6:
            return {self._full: "not reported by this kernel"}
        tick.gauges[self._full] = float(words[6][6:])
        return {}
