"""A Jetson's power rails: what the whole module takes, and what its GPU takes, by the names of the rails.

Names are those of NVIDIA's device trees, in the meters' labels as in tegrastats' lines. A rail named "…5V0"
is one of several that the module's input feeds: alone, it is not the module.
"""

from __future__ import annotations

from runvitals.collectors.base import read_text
from runvitals.collectors.plumbing import sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What measures the input of all, best first. An INA238, which boards have for nothing else, counts as VIN.
INPUTS = ("VIN", "VDD_IN", "POM_5V_IN")
# What feeds the GPU, on some modules together with other parts of the chip.
GPU_RAILS = ("VDD_GPU", "VDD_GPU_SOC", "VDD_CPU_GPU_CV", "VDD_SYS_GPU", "GPU", "POM_5V_GPU")
# Fed by another measured rail (the memory's, by VIN_SYS_5V0): not to be counted twice.
_FED_BY_OTHERS = ("VDDQ",)
_INPUT_METERS = ("ina238", "ina237", "ina228")


def whole(watts: Mapping[str, float | None]) -> float | None:
    """What the module takes: its input's meter, else the sum of the rails that the input feeds. None where
    one of them is not known.

    Example:
        >>> whole({"VDD_IN": 9.0, "VDD_SOC": 2.0}), whole({"VDD_GPU_SOC": 5.0, "VIN_SYS_5V0": 4.0})
        (9.0, 9.0)
        >>> whole({"VDD_GPU_SOC": 5.0, "VDD_CPU_CV": None})
    """
    for name in INPUTS:
        if watts.get(name) is not None:
            return watts[name]
    parts = [value for name, value in watts.items() if not name.startswith(_FED_BY_OTHERS)]
    known = [value for value in parts if value is not None]
    return sum(known) if known and len(known) == len(parts) else None


def of_gpu(watts: Mapping[str, float | None]) -> float | None:
    """What the rail takes that feeds the GPU."""
    return next((watts[name] for name in GPU_RAILS if watts.get(name) is not None), None)


class RailMeter:
    """One rail's files.

    Args:
        levels: volts and amperes, or watts alone.
    """

    __slots__ = ("_levels", "name")

    def __init__(self, name: str, levels: Sequence[sysfs.SysfsLevel]) -> None:
        self.name = name
        self._levels = levels

    def watts(self) -> float | None:
        product = 1.0
        for level in self._levels:
            value = level.read()
            if value is None:
                return None
            product *= value
        return product


def find_meters(folder: str) -> list[RailMeter]:
    """The meters that are of use under a folder of hardware monitors: the input's and the GPU rail's, or,
    where none measures the input, those of all rails that it feeds. Each question goes over a slow bus.
    """
    found = _all_meters(folder)
    names = [name for name in INPUTS if name in found][:1]
    if not names:
        return [meter for name, meter in found.items() if not name.startswith(_FED_BY_OTHERS)]
    names += [name for name in GPU_RAILS if name in found][:1]
    return [found[name] for name in names]


def _all_meters(folder: str) -> dict[str, RailMeter]:
    """INA3221s with three rails each, and the input's own meter, by the rails' names."""
    found: dict[str, RailMeter] = {}
    for name in sysfs.names(folder):
        sensors = f"{folder}/{name}"
        kind = read_text(f"{sensors}/name") or ""
        if kind in _INPUT_METERS:
            power = sysfs.first(sensors, ("power1_input",), 1e-6)
            if power is not None:
                found.setdefault(INPUTS[0], RailMeter(INPUTS[0], [power]))
        elif kind.startswith("ina3221"):
            for meter in _rails(sensors):
                found[meter.name] = meter
    return found


def _rails(sensors: str) -> list[RailMeter]:
    """The connected rails of one meter; what is no rail has no amperes, or is called "NC"."""
    meters = []
    for file in sysfs.names(sensors):
        if not (file.startswith("in") and file.endswith("_label")):
            continue
        number = file.removeprefix("in").removesuffix("_label")
        label = (read_text(f"{sensors}/{file}") or "").strip()
        volts = sysfs.first(sensors, (f"in{number}_input",), 1e-3)
        amperes = sysfs.first(sensors, (f"curr{number}_input",), 1e-3)
        if label and label.upper() != "NC" and volts is not None and amperes is not None:
            meters.append(RailMeter(label, [volts, amperes]))
    return meters
