"""The readings of an AMD GPU from one source, under names shared by all sources."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# No host has more: a larger number is an id of another kind.
MAX_GPUS = 512
# Percentages above this, and negative values other than temperatures, are driver errors.
_MAX_PERCENT = 100.5
_PERCENT = ("gpu", "memory", "memoryAllocated")
# A GPU that is reported as fully busy but draws less than this share of its power limit probably is idle:
# some firmware counts an idle queue as work.
_IDLE_POWER_PERCENT = 25.0
_BUSY_PERCENT = 99.5
# W&B reports the memory's sensor. Without one: the junction (the chip's hottest spot), then the edge.
_TEMPERATURES = ("memoryTemp", "junctionTemp", "edgeTemp")


class AmdGpuReport:
    """One GPU in the output of a source.

    Args:
        index: its number in that source.

    ``readings`` maps names to values: the names in ``gpu.{i}.…`` keys, and ``memoryTotalBytes`` and
    ``gttTotalBytes``, from which others are derived.
    """

    __slots__ = ("hip_index", "index", "partition", "pci", "readings", "title", "unique_id")

    def __init__(self, index: int) -> None:
        self.index = index
        self.pci = ""
        self.unique_id = ""
        self.title = ""
        self.partition = 0
        self.hip_index: int | None = None
        self.readings: dict[str, float] = {}

    def clean(self) -> None:
        """Remove impossible values: -1 % busy, -1 W, and the 0 W of a die without a sensor."""
        readings = self.readings
        for name, value in list(readings.items()):
            if (value < 0.0 and not name.endswith("Temp")) or (name in _PERCENT and value > _MAX_PERCENT):
                del readings[name]
        for name in ("enforcedPowerLimitWatts", "memoryTotalBytes", "gttTotalBytes", "energyJoules"):
            if readings.get(name) == 0.0:
                del readings[name]
        if readings.get("powerWatts") == 0.0 and "enforcedPowerLimitWatts" not in readings:
            del readings["powerWatts"]


def derive(readings: Mapping[str, float]) -> dict[str, float]:
    """Derive the values to write for one GPU from the readings of all sources.

    Adds ``temp``, ``memoryAllocated``, ``powerPercent`` and ``busySuspect``, and removes readings that only
    serve to derive them.

    Example:
        >>> derive({"gpu": 100.0, "powerWatts": 20.0, "enforcedPowerLimitWatts": 200.0, "edgeTemp": 40.0})
        {'gpu': 100.0, 'powerWatts': 20.0, 'enforcedPowerLimitWatts': 200.0, 'edgeTemp': 40.0, 'temp': 40.0, \
'powerPercent': 10.0, 'busySuspect': 1.0}
    """
    values = dict(readings)
    total = values.pop("memoryTotalBytes", 0.0)
    gtt_total = values.pop("gttTotalBytes", 0.0)
    for name in _TEMPERATURES:
        if name in readings:
            values["temp"] = readings[name]
            break
    used = readings.get("memoryAllocatedBytes")
    if used is not None and total > 0.0:
        values["memoryAllocated"] = used * 100.0 / total
    gtt = readings.get("gttAllocatedBytes")
    if gtt is not None and gtt_total > 0.0:
        values["gttAllocated"] = gtt * 100.0 / gtt_total
    power, limit = readings.get("powerWatts"), readings.get("enforcedPowerLimitWatts", 0.0)
    if power is not None and limit > 0.0:
        percent = values["powerPercent"] = power * 100.0 / limit
        if "gpu" in readings:
            suspect = readings["gpu"] >= _BUSY_PERCENT and percent < _IDLE_POWER_PERCENT
            values["busySuspect"] = 1.0 if suspect else 0.0
    return values
