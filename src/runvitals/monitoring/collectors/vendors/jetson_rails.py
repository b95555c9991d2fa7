"""The power rails of a Jetson: power of the module_watts module and of its GPU, by the names of the rails.

The names are those of NVIDIA's device trees, in the labels of the meters and in tegrastats' lines. A rail
named "…5V0" is one of several fed by the module's input: alone, it is not the power of the module.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.plumbing import sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Rails of the module's input, in order of preference. An INA238, which boards use for nothing else, is VIN.
INPUTS = ("VIN", "VDD_IN", "POM_5V_IN")
# Rails that feed the GPU, on some modules together with other parts of the chip.
GPU_RAILS = ("VDD_GPU", "VDD_GPU_SOC", "VDD_CPU_GPU_CV", "VDD_SYS_GPU", "GPU", "POM_5V_GPU")
# Rails behind another measured rail (the memory's, behind VIN_SYS_5V0): not to be counted twice.
_FED_BY_OTHERS = ("VDDQ",)
_INPUT_METERS = ("ina238", "ina237", "ina228")


def module_watts(watts: Mapping[str, float | None]) -> float | None:
    """Power of the module: that of its input's meter, else the sum of the rails that the input feeds.

    None if one of them is unknown.

    Example:
        >>> module_watts({"VDD_IN": 9.0, "VDD_SOC": 2.0}), module_watts({"VDD_GPU_SOC": 5.0, "VIN_SYS_5V0":
        4.0}) (9.0, 9.0)
        >>> module_watts({"VDD_GPU_SOC": 5.0, "VDD_CPU_CV": None})
    """
    for name in INPUTS:
        if watts.get(name) is not None:
            return watts[name]
    parts = [value for name, value in watts.items() if not name.startswith(_FED_BY_OTHERS)]
    rails = [value for value in parts if value is not None]
    return sum(rails) if rails and len(rails) == len(parts) else None


def gpu_watts(watts: Mapping[str, float | None]) -> float | None:
    """Power of the rail that feeds the GPU."""
    return next((watts[name] for name in GPU_RAILS if watts.get(name) is not None), None)


class RailMeter:
    """The files of one rail.

    Args:
        levels: volts and amperes, or only watts.
    """

    __slots__ = ("_levels", "name")

    def __init__(self, name: str, levels: Sequence[sysfs.SysfsLevel]) -> None:
        self.name = name
        self._levels = levels

    def watts(self) -> float | None:
        """Read the power of the rail."""
        product = 1.0
        for level in self._levels:
            value = level.read()
            if value is None:
                return None
            product *= value
        return product


def find_meters(folder: str) -> list[RailMeter]:
    """List the useful meters in a folder of hardware monitors.

    Those of the input and of the GPU's rail, or, without a meter of the input, those of all rails that it
    feeds. Each read uses a slow bus.
    """
    meters = _all_meters(folder)
    names = [name for name in INPUTS if name in meters][:1]
    if not names:
        return [meter for name, meter in meters.items() if not name.startswith(_FED_BY_OTHERS)]
    names += [name for name in GPU_RAILS if name in meters][:1]
    return [meters[name] for name in names]


def _all_meters(folder: str) -> dict[str, RailMeter]:
    """INA3221s with three rails each, and the input's meter, by the rails' names."""
    meters: dict[str, RailMeter] = {}
    for name in sysfs.names(folder):
        sensors = f"{folder}/{name}"
        kind = read_text(f"{sensors}/name") or ""
        if kind in _INPUT_METERS:
            power = sysfs.first(sensors, ("power1_input",), 1e-6)
            if power is not None:
                meters.setdefault(INPUTS[0], RailMeter(INPUTS[0], [power]))
        elif kind.startswith("ina3221"):
            for meter in _rails(sensors):
                meters[meter.name] = meter
    return meters


def _rails(sensors: str) -> list[RailMeter]:
    """Return the connected rails of one meter.

    Channels that are not rails have no current, or are called "NC".
    """
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
