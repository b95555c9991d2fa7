"""Load, memory and restarts of the GPU from ioreg, which every Mac has."""

from __future__ import annotations

from runvitals.collectors.apple import ioreg_output
from runvitals.collectors.plumbing.excerpt import first_lines
from runvitals.collectors.plumbing.tool import Tool, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.collectors.apple.chip import AppleChip
    from runvitals.collectors.base import Tick

PLACE = "/usr/sbin/ioreg"
# The property list first: nothing in it can be misread.
COMMANDS = (
    ("-a", "-r", "-d", "1", "-c", "IOAccelerator"),
    ("-r", "-d", "1", "-w", "0", "-c", "IOAccelerator"),
)
# ioreg takes 10 to 50 ms of a core; so where somebody else tells the load, it is asked less often.
MEMORY_EVERY_S = 5.0
LOAD_EVERY_S = 1.0
# An answer older than this, after a pause because of failures, is not one of the tick it would be put in.
STALE_S = 10.0
# The driver's names for the load, best first.
_LOAD = ("Device Utilization %", "GPU Activity(%)", "Renderer Utilization %")
_MEMORY = "In use system memory"


class Ioreg:
    """`gpu.{i}.gpu`, `.memoryAllocatedBytes`, `.memoryAllocated`, `.recoveryCount` as the GPU's driver tells.

    Args:
        path: where ioreg lies.
        chip: learns the GPU's name.
    """

    name = "ioreg"

    def __init__(self, path: str, chip: AppleChip) -> None:
        self.absent: dict[str, str] = {}
        self.answered = False
        self._path = path
        self._chip = chip
        self._commands = list(COMMANDS)
        self._tells_load = True
        self._tool = self._new_tool()
        self._failed = ""

    @property
    def pending(self) -> bool:
        """Whether the first answer is under way."""
        return not self.answered and self._tool.running

    def tell_load(self, wanted: bool) -> None:
        """Whether the load is wanted as well; where macmon tells it, ioreg is started less often."""
        if wanted != self._tells_load:
            self._tells_load = wanted
            self.close()
            self._tool = self._new_tool()

    def sample(self, tick: Tick) -> None:
        """Write the newest answer, if there is one.

        Raises:
            ToolFailed: ioreg could not be asked or understood; again at each call until it answers.
        """
        output: bytes | None = None
        try:
            output = self._tool.output(tick.mono_s)
            gpus = None if output is None else ioreg_output.parse(output)
        except (ToolFailed, ValueError) as error:
            self._failed = str(error)
            if not isinstance(error, ToolFailed):
                self._failed = f"{self._path}: {error}; it printed {first_lines(output or b'')}"
            if not self.answered:  # perhaps this release wants to be asked in another way
                self._commands.reverse()
                self.close()
                self._tool = self._new_tool()
            raise ToolFailed(self._failed) from None
        if gpus is None:
            if self._failed:
                raise ToolFailed(self._failed)  # no news is not good news
            return
        was_failing, self._failed = bool(self._failed), ""
        self.answered = self._chip.is_settled = True
        if was_failing and tick.mono_s - self._tool.moment_s > STALE_S:
            return  # as old as the pause after the failure: a good sign, but no readings
        for index, gpu in enumerate(gpus):
            self._chip.learn(gpu.model, gpu.about)
            self._write(tick, index, gpu.statistics)
        names = {name for gpu in gpus for name in gpu.statistics}
        missing = [] if names.intersection(_LOAD) else ["gpu"]
        missing += [] if _MEMORY in names else ["memoryAllocatedBytes", "memoryAllocated"]
        absent = dict.fromkeys(missing, "the GPU's driver does not tell it to ioreg")
        if absent != self.absent:
            self.absent = absent

    def close(self) -> None:
        """End what runs."""
        self._tool.close()

    def _new_tool(self) -> Tool:
        return Tool([self._path, *self._commands[0]], LOAD_EVERY_S if self._tells_load else MEMORY_EVERY_S)

    def _write(self, tick: Tick, index: int, statistics: Mapping[str, float]) -> None:
        load = next((statistics[name] for name in _LOAD if name in statistics), None)
        if load is not None and self._tells_load:
            tick.gauges[f"gpu.{index}.gpu"] = min(load, 100.0)  # some drivers count beyond
        used = statistics.get(_MEMORY)
        if used is not None:
            tick.gauges[f"gpu.{index}.memoryAllocatedBytes"] = used
            if self._chip.memory_bytes > 0.0:
                tick.gauges[f"gpu.{index}.memoryAllocated"] = used * 100.0 / self._chip.memory_bytes
        if "recoveryCount" in statistics:
            tick.counters[f"gpu.{index}.recoveryCount"] = statistics["recoveryCount"]
