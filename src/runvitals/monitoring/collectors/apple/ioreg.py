"""Load, memory and restarts of the GPU from ioreg, which every Mac has."""

from __future__ import annotations

from runvitals.monitoring.collectors.apple import ioreg_output
from runvitals.monitoring.collectors.plumbing.missing_readings import explain
from runvitals.monitoring.collectors.plumbing.plain_text import first_lines
from runvitals.monitoring.collectors.plumbing.tool import Tool, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.monitoring.collectors.apple.chip import AppleChip
    from runvitals.monitoring.collectors.base import Tick

IOREG_PATH = "/usr/sbin/ioreg"
# The property list first: unlike the tree of lines, it is unambiguous.
COMMANDS = (
    ("-a", "-r", "-d", "1", "-c", "IOAccelerator"),
    ("-r", "-d", "1", "-w", "0", "-c", "IOAccelerator"),
)
# ioreg takes 10 to 50 ms of CPU, so it is called less often if macmon reports the load.
MEMORY_EVERY_S = 5.0
LOAD_EVERY_S = 1.0
# More is no reading, and the monitor leaves it out.
MAX_LOAD = 200.0
# After a pause due to failures, readings older than this are dropped: they do not belong to this tick.
STALE_S = 10.0
# The driver's names for the load, in order of preference.
_LOAD = ("Device Utilization %", "GPU Activity(%)", "Renderer Utilization %")
_MEMORY = "In use system memory"


class Ioreg:
    """`gpu.{i}.gpu`, `.memoryAllocatedBytes`, `.memoryAllocated`, `.recoveryCount` from the GPU's driver.

    Args:
        path: path of ioreg.
        chip: learns the GPU's name.
    """

    name = "ioreg"

    def __init__(self, path: str, chip: AppleChip) -> None:
        self.absent: dict[str, str] = {}
        self.has_worked = False
        self._path = path
        self._chip = chip
        self._commands = list(COMMANDS)
        self._reads_load = True
        self._tool = self._new_tool()
        self._failed = ""

    @property
    def pending(self) -> bool:
        """Whether the first call is in progress."""
        return not self.has_worked and self._tool.running

    def read_load(self, needed: bool) -> None:
        """Set whether the load is needed. If macmon reports it, ioreg is called less often."""
        if needed != self._reads_load:
            self._reads_load = needed
            self.close()
            self._tool = self._new_tool()

    def sample(self, tick: Tick) -> None:
        """Write the newest readings, if there are any.

        Raises:
            ToolFailed: ioreg failed or its output is invalid. Raised at each call until it works.
        """
        output: bytes | None = None
        try:
            output = self._tool.output(tick.mono_s)
            gpus = None if output is None else ioreg_output.parse(output)
        except (ToolFailed, ValueError) as error:
            self._failed = str(error)
            if not isinstance(error, ToolFailed):
                self._failed = f"{self._path}: {error}; it printed {first_lines(output or b'')}"
            if not self.has_worked:  # this release may support only the other output format
                self._commands.reverse()
                self.close()
                self._tool = self._new_tool()
            raise ToolFailed(self._failed) from None
        if gpus is None:
            if self._failed:
                raise ToolFailed(self._failed)  # still failing, with no newer output
            return
        was_failing, self._failed = bool(self._failed), ""
        self.has_worked = self._chip.is_settled = True
        if was_failing and tick.mono_s - self._tool.moment_s > STALE_S:
            return  # it works again, but this output is as old as the pause
        for index, gpu in enumerate(gpus):
            self._chip.learn(gpu.model, gpu.about)
            self._write(tick, index, gpu.statistics)
        absent = explain({index: _missing(gpu.statistics) for index, gpu in enumerate(gpus)})
        if absent != self.absent:
            self.absent = absent

    def close(self) -> None:
        """Stop the child process."""
        self._tool.close()

    def _new_tool(self) -> Tool:
        return Tool([self._path, *self._commands[0]], LOAD_EVERY_S if self._reads_load else MEMORY_EVERY_S)

    def _write(self, tick: Tick, index: int, statistics: Mapping[str, float]) -> None:
        load = next((statistics[name] for name in _LOAD if name in statistics), None)
        if load is not None and self._reads_load:
            # Some drivers exceed 100.
            tick.gauges[f"gpu.{index}.gpu"] = min(load, 100.0) if load <= MAX_LOAD else load
        used = statistics.get(_MEMORY)
        if used is not None:
            tick.gauges[f"gpu.{index}.memoryAllocatedBytes"] = used
            if self._chip.memory_bytes > 0.0:
                tick.gauges[f"gpu.{index}.memoryAllocated"] = used * 100.0 / self._chip.memory_bytes
        if "recoveryCount" in statistics:
            tick.counters[f"gpu.{index}.recoveryCount"] = statistics["recoveryCount"]


def _missing(statistics: Mapping[str, float]) -> dict[str, str]:
    missing = [] if any(name in statistics for name in _LOAD) else ["gpu"]
    missing += [] if _MEMORY in statistics else ["memoryAllocatedBytes", "memoryAllocated"]
    missing += [] if "recoveryCount" in statistics else ["recoveryCount"]
    return dict.fromkeys(missing, "not reported by the GPU's driver")
