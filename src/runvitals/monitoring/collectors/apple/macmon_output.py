"""Parses macmon's output, a line of JSON for each sample, in the formats of its versions.

- macmon 0.4 to 0.7: ``"gpu_usage": [MHz, share of the highest performance]``
- 0.8 and later: in addition ``"gpu_freq_mhz"``, ``"gpu_active_ratio"`` and ``"fans": [{"rpm": …}]``
- the library, as printed by `macmon_child.py`: ``"usage": {"gpu": [{"name", "freq_mhz", "usage",
"units"}]}``,
  ``"power": {"gpu": …}``

Shares are scaled by the clock before 0.8 and in the library: time at half the highest clock counts half.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Key -> its fields as (section, name); the first one with a number is used. Section "" is the top level.
_NUMBERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cpu.powerWatts": (("", "cpu_power"), ("power", "cpu")),
    "gpu.0.powerWatts": (("", "gpu_power"), ("power", "gpu")),
    "ane.power": (("", "ane_power"), ("power", "ane")),
    "memory.powerWatts": (("", "ram_power"), ("power", "ram")),
    "system.powerWatts": (("", "sys_power"), ("power", "board")),
    "cpu.avg_temp": (("temp", "cpu_temp_avg"), ("temp", "cpu_avg")),
    "gpu.0.temp": (("temp", "gpu_temp_avg"), ("temp", "gpu_avg")),
    "memory.used": (("memory", "ram_usage"),),
    "swap.used": (("memory", "swap_usage"),),
}
# Keys for which 0 means "unknown".
_NEVER_ZERO = ("system.powerWatts", "cpu.avg_temp", "gpu.0.temp", "memory.used")
# Part of the chip -> keys of its clock and load. The smaller cores of an M5 are MCPU; macmon calls them
# "ecpu".
_UNITS = {
    "ecpu": ("cpu.ecpu_freq", "cpu.ecpu_percent"),
    "pcpu": ("cpu.pcpu_freq", "cpu.pcpu_percent"),
    "gpu": ("gpu.0.graphicsClock", "gpu.0.gpu"),
}
_DAY_S = 86400.0


class MacmonSample:
    """One sample.

    Attributes:
        gauges: key → value.
        chip: the chip's name, "" if the sample lacks it; `about` are its properties.
        clock_s: time at which it was taken, in seconds of the day; None if the sample lacks it.
    """

    __slots__ = ("about", "chip", "clock_s", "gauges", "memory_bytes")

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.gauges: dict[str, float] = {}
        self.chip = ""
        self.about: dict[str, object] = {}
        self.clock_s = _seconds_of_day(value.get("timestamp"))
        soc = _section(value, "soc")
        for key, fields in _NUMBERS.items():
            numbers = [_number(_section(value, section).get(name)) for section, name in fields]
            first_number = next((number for number in numbers if number is not None), None)
            if first_number is not None and not (first_number == 0.0 and key in _NEVER_ZERO):
                self.gauges[key] = first_number
        self._read_memory(_section(value, "memory"))
        if isinstance(value.get("usage"), dict):
            self._read_library(value["usage"], soc)
        else:
            self._read_units(value)
        self._read_fans(value.get("fans"))
        self._correct_system_power()
        self._read_chip(soc)

    def _read_memory(self, memory: Mapping[str, Any]) -> None:
        for kind, key in (("ram", "memory.used"), ("swap", "swap.used")):
            total = _number(memory.get(f"{kind}_total"))
            if not total:
                self.gauges.pop(key, None)
            elif key in self.gauges:
                self.gauges[f"{key}_percent"] = self.gauges[key] * 100.0 / total

    def _read_units(self, value: Mapping[str, Any]) -> None:
        for unit, (clock_key, load_key) in _UNITS.items():
            pair = value.get(f"{unit}_usage")
            clock, scaled = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
            active = _number(value.get(f"{unit}_active_ratio"))
            clock = _number(value.get(f"{unit}_freq_mhz", clock))
            if clock:
                self.gauges[clock_key] = clock
            if active is not None:
                self.gauges[load_key] = _percent(active)
            elif unit != "gpu" and (share := _number(scaled)) is not None:
                self.gauges[load_key] = _percent(share)

        active = _number(value.get("cpu_active_ratio"))
        if active is not None:
            self.gauges["cpu.active_percent"] = _percent(active)

    def _read_fans(self, fans: Any) -> None:
        for number, fan in enumerate(_objects(fans)):
            turns, most = _number(fan.get("rpm")), _number(fan.get("max_rpm"))
            if turns is not None:
                self.gauges[f"fan.{number}.rpm"] = turns
            if turns is not None and most:
                self.gauges[f"fan.{number}.percent"] = turns * 100.0 / most

    def _read_library(self, usage: Mapping[str, Any], soc: Mapping[str, Any]) -> None:
        """Means over clusters, weighted by their number of cores."""
        entries = [each for kind in ("cpu", "gpu") for each in _objects(usage.get(kind))]
        highest = max((_number(mhz) or 0.0 for mhz in soc.get("gpu_freqs") or ()), default=0.0)
        for unit, (clock_key, load_key) in _UNITS.items():
            own = [each for each in entries if _unit_of(str(each.get("name", ""))) == unit]
            cores = sum(_number(each.get("units")) or 1.0 for each in own)
            if not own or not cores:
                continue
            clock = sum(
                (_number(each.get("freq_mhz")) or 0.0) * (_number(each.get("units")) or 1.0) for each in own
            )
            load = sum(
                (_number(each.get("usage")) or 0.0) * (_number(each.get("units")) or 1.0) for each in own
            )
            clock, load = clock / cores, load / cores
            if clock > 0.0:
                self.gauges[clock_key] = clock
            if unit != "gpu":
                self.gauges[load_key] = _percent(load)
            elif clock > 0.0 and highest > 0.0:
                # Undo the scaling by the clock to get the share of time.
                self.gauges[load_key] = _percent(load * highest / clock)

    def _correct_system_power(self) -> None:
        """The meter of the whole machine lags. Raise its value to the sum of the parts."""
        system = self.gauges.get("system.powerWatts")
        if system is not None:
            parts = sum(
                self.gauges.get(key, 0.0) for key in ("cpu.powerWatts", "gpu.0.powerWatts", "ane.power")
            )
            self.gauges["system.powerWatts"] = max(system, parts)

    def _read_chip(self, soc: Mapping[str, Any]) -> None:
        self.chip = str(soc.get("chip_name") or "")
        names = {
            "mac_model": "model",
            "gpu_cores": "gpu_cores",
            "ecpu_cores": "ecpu_cores",
            "pcpu_cores": "pcpu_cores",
        }
        self.about = {ours: soc[theirs] for theirs, ours in names.items() if soc.get(theirs)}


def elapsed_s(earlier_s: float | None, later_s: float | None, usual_s: float) -> float:
    """Return the time between two samples by their own clocks; `usual_s` if these are missing or implausible.

    >>> elapsed_s(86399.5, 0.5, 2.0), elapsed_s(None, 7.0, 2.0), elapsed_s(100.0, 50000.0, 2.0)
    (1.0, 2.0, 2.0)
    """
    if earlier_s is None or later_s is None:
        return usual_s
    between_s = (later_s - earlier_s) % _DAY_S
    return between_s if 0.0 < between_s < 5.0 * usual_s else usual_s


def mean(samples: list[MacmonSample]) -> dict[str, float]:
    """Return the mean of each key over the samples that have it."""
    keys = dict.fromkeys(key for sample in samples for key in sample.gauges)
    values = {key: [sample.gauges[key] for sample in samples if key in sample.gauges] for key in keys}
    return {key: sum(numbers) / len(numbers) for key, numbers in values.items()}


def _section(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = value.get(name) if name else value
    return section if isinstance(section, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    """Return a finite number. None of the values here can be negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0.0:
        return None
    return float(value) if value >= 0 else None


def _percent(share: float) -> float:
    return min(share, 1.0) * 100.0


def _unit_of(name: str) -> str:
    name = name.upper()
    if "GPU" in name:
        return "gpu"
    return "pcpu" if "PCPU" in name else "ecpu"


def _seconds_of_day(stamp: Any) -> float | None:
    """Return the seconds of the day in ``2026-02-17T19:34:27.942556+00:00``."""
    text = stamp[11:] if isinstance(stamp, str) else ""
    hours, minutes, seconds = text[0:2], text[3:5], text[6:].partition("+")[0].rstrip("Z")
    try:
        return int(hours) * 3600.0 + int(minutes) * 60.0 + float(seconds)
    except ValueError:
        return None
