"""Lines of NVIDIA's tegrastats: load, memory, temperature and power of a Jetson."""

from __future__ import annotations

from itertools import pairwise

from runvitals.collectors.base import MIB
from runvitals.collectors.quantity import amount
from runvitals.collectors.tool import Stream
from runvitals.collectors.vendors.adapter import POWER, TOTAL, USED, Device, complete, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Tick

# The meter of the whole module, by board; else of the rail that feeds the GPU.
RAILS = (
    *("VDD_IN", "VIN_SYS_5V0", "POM_5V_IN", "VIN"),
    *("VDD_GPU_SOC", "VDD_CPU_GPU_CV", "VDD_SYS_GPU", "VDD_GPU", "GPU", "POM_5V_GPU"),
)


def parse(line: str) -> Device:
    """A line's readings. What a board or release does not print is left out.

    Example:
        >>> parse("RAM 4300/30698MB GR3D_FREQ 45% tj@52.4C VDD_GPU_SOC 2171mW").gauges["powerWatts"]
        2.171
    """
    device = Device(0, {})
    gauges = device.gauges
    rails: dict[str, float] = {}
    temperatures: dict[str, float] = {}
    words = line.split()
    for name, value in pairwise(words):
        if name == "RAM":
            used, _, total = value.partition("/")
            _set(gauges, USED, amount(used, "1"), MIB)
            _set(gauges, TOTAL, amount(total, "bytes"))
        elif name == "GR3D_FREQ":
            share, _, clock = value.partition("@")
            _set(gauges, "gpu", amount(share, "%"))
            _set(gauges, "graphicsClock", amount(clock.strip("[]").partition(",")[0], "MHz"))
        elif name.startswith(("VDD_", "VIN", "POM_", "GPU")):
            watts = amount(value.partition("/")[0], "W", "mW")
            if watts is not None:
                rails[name] = watts
    for word in words:
        sensor, at, celsius = word.partition("@")
        degrees = amount(celsius, "°C") if at and celsius.endswith("C") else None
        if degrees is not None and degrees > -200.0:  # -256C: the sensor is off
            temperatures[sensor.lower()] = degrees
    _set(gauges, "temp", next((temperatures[name] for name in ("gpu", "tj") if name in temperatures), None))
    _set(gauges, POWER, next((rails[name] for name in RAILS if name in rails), None))
    complete(device)
    return device


def _set(gauges: dict[str, float], key: str, value: float | None, factor: float = 1.0) -> None:
    if value is not None:
        gauges[key] = value * factor


class Tegrastats:
    """The newest line of a tegrastats that goes on printing.

    Args:
        path: where it lies.
        index: of the GPU in keys ``gpu.{i}.…``.
    """

    name = "tegrastats"

    def __init__(self, path: str, index: int) -> None:
        self._index = index
        self._stream = Stream([path, "--interval", "1000"])

    def sample(self, tick: Tick) -> None:
        """Write the newest line's readings.

        Raises:
            ToolFailed: it ended.
        """
        for line in self._stream.lines(tick.mono_s)[-1:]:
            device = parse(line.decode("utf-8", "replace"))
            device.index = self._index
            write(tick, [device], 0)

    def close(self) -> None:
        self._stream.close()
