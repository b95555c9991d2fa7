"""Parses lines of NVIDIA's tegrastats: load, memory, temperature and power of a Jetson."""

from __future__ import annotations

from itertools import pairwise

from runvitals.monitoring.collectors.plumbing.quantity import amount
from runvitals.monitoring.collectors.plumbing.tool import StreamingTool
from runvitals.monitoring.collectors.vendors import jetson_rails
from runvitals.monitoring.collectors.vendors.devices import POWER, TOTAL, USED, VendorDevice, complete, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Tick

GPU_RAIL = "gpuRailWatts"


def parse(line: str) -> VendorDevice:
    """Return the readings in a line. What a board or release does not print is left out.

    Example:
        >>> parse("RAM 4300/30698MB GR3D_FREQ 45% tj@52.4C VDD_IN 7171mW").gauges["powerWatts"]
        7.171
    """
    device = VendorDevice(0, {})
    gauges = device.gauges
    watts: dict[str, float | None] = {}
    temperatures: dict[str, float] = {}
    words = line.split()
    for name, value in pairwise(words):
        if name == "RAM":
            used, _, total = value.partition("/")
            _set(gauges, USED, amount(used, "bytes", total.lstrip("0123456789.") or "MB"))
            _set(gauges, TOTAL, amount(total, "bytes", "MB"))
        elif name in ("GR3D_FREQ", "GR3D"):  # the latter before JetPack 4
            share, _, clock = value.partition("@")
            _set(gauges, "gpu", amount(share, "%"))
            _set(gauges, "graphicsClock", amount(clock.strip("[]").partition(",")[0], "MHz"))
        elif _is_rail(name, value):
            watts[name] = amount(value.partition("/")[0], "W", "mW")
    for word in words:
        sensor, _, celsius = word.partition("@")
        # The current value and the mean: "47.6C/47.6C", since JetPack 7.
        celsius = celsius.partition("/")[0]
        degrees = amount(celsius, "°C") if celsius.endswith("C") else None
        if degrees is not None and degrees > -200.0:  # -256C: the sensor is off
            temperatures[sensor.lower()] = degrees
    _set(gauges, "temp", next((temperatures[name] for name in ("gpu", "tj") if name in temperatures), None))
    _set(gauges, POWER, jetson_rails.module_watts(watts))
    _set(gauges, GPU_RAIL, jetson_rails.gpu_watts(watts))
    complete(device)
    return device


def _is_rail(name: str, value: str) -> bool:
    """Return whether a value is a rail's power, current and mean: "5139mW/5139mW", "5139mW", "0/144"."""
    parts = value.split("/")
    watts = all(part.endswith("W") and part[:1].isdigit() for part in parts)
    return name[:1].isalpha() and (watts or (len(parts) > 1 and all(part.isdigit() for part in parts)))


def _set(gauges: dict[str, float], key: str, value: float | None) -> None:
    if value is not None:
        gauges[key] = value


class Tegrastats:
    """The newest line of a running tegrastats.

    Args:
        path: of the tool.
        index: of the GPU in keys ``gpu.{i}.…``.
    """

    name = "tegrastats"

    def __init__(self, path: str, index: int) -> None:
        self._index = index
        self._stream = StreamingTool([path, "--interval", "1000"])

    def sample(self, tick: Tick) -> None:
        """Write the readings of the newest line.

        Raises:
            ToolFailed: it exited or its output is invalid. Raised at each call until a valid line arrives.
        """
        lines = [line for line in self._stream.lines(tick.mono_s) if line.strip()]
        for line in reversed(lines):  # the last one may be a message
            device = parse(line.decode("utf-8", "replace"))
            if device.gauges:
                device.index = self._index
                write(tick, [device], 0)
                return
        if lines:
            raise self._stream.reject(lines)

    def close(self) -> None:
        """Release what is open."""
        self._stream.close()
