"""LoadAverages averages (/proc/loadavg) and uptime (/proc/uptime)."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent, PseudoFile, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick


def probe(scope: Scope) -> LoadAverages:
    """Make the collector; raise Absent if the machine lacks the source."""
    try:
        return LoadAverages(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class LoadAverages:
    """The load averages and the uptime.

    `system.load1`, `5`, `15`: threads that run or wait for a CPU or disk, averaged over 1, 5 and 15 minutes;
    `system.uptime`.
    """

    name = "load"
    every_s = 10.0  # the shortest average is over one minute

    def __init__(self, scope: Scope) -> None:
        self._file = PseudoFile(scope.path("/proc/loadavg"))
        self._uptime_path: str | None = scope.path("/proc/uptime")
        self._started_s: float | None = None
        self.absent: dict[str, str] = {}

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        gauges = tick.gauges
        one_minute, five, fifteen, _ = self._file.read().split(None, 3)
        gauges["system.load1"] = float(one_minute)
        gauges["system.load5"] = float(five)
        gauges["system.load15"] = float(fifteen)
        if self._uptime_path is not None:
            # Read once; from then on the tick's clock is used.
            text = read_text(self._uptime_path)
            if not text:
                self.absent = {"system.uptime": f"{self._uptime_path} cannot be read"}
            self._uptime_path = None
            self._started_s = tick.mono_s - float(text.split()[0]) if text else None
        if self._started_s is not None:
            gauges["system.uptime"] = tick.mono_s - self._started_s
