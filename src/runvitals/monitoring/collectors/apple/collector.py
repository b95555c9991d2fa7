"""The collector of Macs: ioreg and macmon, which fail and recover independently."""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.apple.chip import UNKNOWN_WATTS, AppleChip
from runvitals.monitoring.collectors.apple.ioreg import IOREG_PATH, Ioreg
from runvitals.monitoring.collectors.apple.macmon import Macmon, commands, period
from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.tool import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick

NO_MACMON = (
    "not installed; it reports power, temperatures, clocks and energy: pip install macmon-lib, or "
    "brew install macmon"
)


def open_mac(scope: Scope) -> Mac:
    """Return the collector, with the programs installed on this Mac.

    Raises:
        Absent: neither ioreg nor macmon is installed.
    """
    chip = AppleChip(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    period_s = period(scope.interval_s)
    registry, macmon_commands = find("ioreg", IOREG_PATH), commands(sys.path, period_s)
    if registry is None and not macmon_commands:
        raise Absent(f"found neither ioreg (on PATH, {IOREG_PATH}) nor macmon")
    return Mac(
        chip,
        Ioreg(registry, chip) if registry is not None else None,
        Macmon(macmon_commands, chip, period_s) if macmon_commands else None,
    )


class Mac:
    """`gpu.0.…`; power, clocks and load of the CPU clusters; the Neural Engine; memory.

    Args:
        ioreg: None if not installed.
        macmon: None if not installed.
    """

    name = "apple"

    def __init__(self, chip: AppleChip, ioreg: Ioreg | None, macmon: Macmon | None) -> None:
        self.absent: dict[str, str] = {}
        self.facts: dict[str, object] = {}
        self._chip = chip
        self._ioreg = ioreg
        self._macmon = macmon
        # If both report a value, that of macmon is used.
        self._parts = CompositeSource("apple", [part for part in (ioreg, macmon) if part is not None])
        self._update_facts()

    @property
    def pending(self) -> bool:
        """Whether a source's first reading is in progress."""
        return self._parts.pending

    def sample(self, tick: Tick) -> None:
        """Write the readings of both sources; raise ToolFailed if both failed."""
        self._parts.sample(tick)
        if self._ioreg is not None:
            self._ioreg.read_load(self._macmon is None or not self._macmon.has_load)
        self._update_facts()

    def close(self) -> None:
        """Stop the child processes."""
        self._parts.close()

    def _update_facts(self) -> None:
        """Update `facts` and `absent`; replace an object only if it has changed."""
        absent = dict(self._parts.absent)
        if self._macmon is None:
            absent["macmon"] = NO_MACMON
        if self._chip.is_settled:
            if self._macmon is not None and self._chip.gpu_watts is None:
                absent["gpu.0.powerPercent"] = (
                    f"relative to {UNKNOWN_WATTS} W, as W&B does: the power limit of the {self._chip.title} "
                    "GPU is unknown"
                )
            facts: dict[str, object] = {"apple": self._chip.facts()}
            if facts != self.facts:
                self.facts = facts
        if absent != self.absent:
            self.absent = absent
