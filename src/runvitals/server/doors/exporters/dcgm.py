"""NVIDIA's DCGM exporter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from runvitals.monitoring.collectors.dcgm.fields import (
    COUNTERS,
    FLOWS,
    GAUGES,
    MEMORY,
    MIB,
    RATIOS,
    THROTTLED,
    DcgmSeries,
)
from runvitals.server.doors.exporters.translation import (
    Derived,
    Input,
    ScrapedMoment,
    Translation,
    Values,
    possible,
)

_PREFIX = "DCGM_FI_"
_USED, _FREE, _RESERVED, _TOTAL = "DEV_FB_USED", "DEV_FB_FREE", "DEV_FB_RESERVED", "DEV_FB_TOTAL"
_POWER, _LIMIT = "powerWatts", "enforcedPowerLimitWatts"


def translate(name: str, labels: Mapping[str, str], device: int | None) -> Translation | None:
    """Return how a series of the exporter becomes ours."""
    series = DcgmSeries(name.removeprefix(_PREFIX), labels, 0.0, is_total=False)
    index = series.index if series.index is not None else device
    if index is None or (series.slice and series.name in FLOWS):
        return None
    # Readings of the board are repeated for each slice.
    prefix = f"gpu.{index}." + (series.slice if series.is_of_slice else "")
    field = series.name
    if field in GAUGES:
        end, factor = GAUGES[field]
        inputs = (Input(_power(prefix), end),) if end in (_POWER, _LIMIT) else ()
        return Translation(prefix + end, factor, has_blanks=True, inputs=inputs)
    if field in COUNTERS:
        end, factor = COUNTERS[field]
        return Translation(prefix + end, factor, has_blanks=True)
    if field in RATIOS:
        return Translation(prefix + RATIOS[field], 100.0, highest=1.0, has_blanks=True)
    if field in MEMORY:
        return Translation(has_blanks=True, inputs=(Input(_memory(prefix), field),))
    if field in FLOWS:
        return Translation(prefix + FLOWS[field], has_blanks=True)
    if field in THROTTLED:
        return Translation(f"{prefix}throttle.{THROTTLED[field]}Seconds", 1e-9, has_blanks=True)
    return None


@lru_cache(4096)
def _power(prefix: str) -> Derived:
    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        if not values[_LIMIT]:
            return {}
        percent = values[_POWER] * 100.0 / values[_LIMIT]
        # As the monitor marks it, which leaves out the share as well.
        suspect = {prefix + "powerSuspect": 1.0} if percent > possible(prefix + "powerPercent")[1] else {}
        return {prefix + "powerPercent": percent, **suspect}

    return Derived(prefix + "powerPercent", compute, frozenset((_POWER, _LIMIT)))


@lru_cache(4096)
def _memory(prefix: str) -> Derived:
    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        used = values.get(_USED)
        if used is None:
            return {}
        values_by_key = {prefix + "memoryAllocatedBytes": used * MIB}
        total = values.get(_TOTAL)
        if total is None and _FREE in values:
            total = used + values[_FREE] + values.get(_RESERVED, 0.0)
        if total:
            values_by_key[prefix + "memoryAllocated"] = used * 100.0 / total
        return values_by_key

    return Derived(prefix + "memory", compute)
