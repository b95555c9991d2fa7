"""A Mac as a source: ioreg and macmon, each failing and coming back alone."""

from __future__ import annotations

import os
import sys

from runvitals.collectors.apple.chip import UNKNOWN_WATTS, AppleChip
from runvitals.collectors.apple.ioreg import PLACE, Ioreg
from runvitals.collectors.apple.macmon import Macmon, commands, period
from runvitals.collectors.base import Absent
from runvitals.collectors.plumbing.composite import CompositeSource
from runvitals.collectors.plumbing.tool import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope, Tick

NO_MACMON = (
    "tells power, temperatures, clocks and energy, and is not here: install it (pip install macmon-lib, or "
    "brew install macmon)"
)


def open_mac(scope: Scope) -> Mac:
    """The source, with what is on this Mac.

    Raises:
        Absent: there is nothing to ask.
    """
    chip = AppleChip(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    period_s = period(scope.interval_s)
    registry, ways = find("ioreg", PLACE), commands(sys.path, period_s)
    if registry is None and not ways:
        raise Absent(f"neither ioreg (on PATH, {PLACE}) nor macmon is here")
    return Mac(
        chip,
        Ioreg(registry, chip) if registry is not None else None,
        Macmon(ways, chip, period_s) if ways else None,
    )


class Mac:
    """`gpu.0.…`, power, clocks and loads of the processor's clusters, the Neural Engine, memory.

    Args:
        ioreg: None where it is not here.
        macmon: None where it is not here.
    """

    name = "apple"

    def __init__(self, chip: AppleChip, ioreg: Ioreg | None, macmon: Macmon | None) -> None:
        self.absent: dict[str, str] = {}
        self.facts: dict[str, object] = {}
        self._chip = chip
        self._ioreg = ioreg
        self._macmon = macmon
        # Macmon's word counts more where both tell something.
        self._parts = CompositeSource("apple", [part for part in (ioreg, macmon) if part is not None])
        self._tell()

    @property
    def pending(self) -> bool:
        """Whether a part's first answer is under way."""
        return self._parts.pending

    def sample(self, tick: Tick) -> None:
        """Write what both parts have to tell.

        Raises:
            ToolFailed: neither of them works.
        """
        self._parts.sample(tick)
        if self._ioreg is not None:
            self._ioreg.tell_load(self._macmon is None or not self._macmon.tells_load)
        self._tell()

    def close(self) -> None:
        """End what runs."""
        self._parts.close()

    def _tell(self) -> None:
        """Keep `facts` and `absent` true; a new object only where something changed."""
        absent = dict(self._parts.absent)
        if self._macmon is None:
            absent["macmon"] = NO_MACMON
        if self._chip.is_settled:
            if self._macmon is not None and self._chip.gpu_watts is None:
                absent["gpu.0.powerPercent"] = (
                    f"of {UNKNOWN_WATTS} W, as W&B counts it: what the GPU of {self._chip.title} may draw is "
                    "not known"
                )
            facts: dict[str, object] = {"apple": self._chip.facts()}
            if facts != self.facts:
                self.facts = facts
        if absent != self.absent:
            self.absent = absent
