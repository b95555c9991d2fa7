"""Simulated AMD GPUs."""

from __future__ import annotations

import numpy as np

from runvitals.tools.simulate.load import DeviceLoad, LaggedValue, RunningTotal, percent, rounded
from runvitals.tools.simulate.noise import Floats, NoiseBlock

NAME = "AMD Instinct MI300X"
_MEMORY_BYTES = 206_141_652_992
_IDLE_W, _LIMIT_W = 140.0, 750.0
_CLOCK_MHZ, _MEMORY_CLOCK_MHZ = 2100.0, 1300.0
_SLOWDOWN_C = 92.0
_NAMES = (
    "gpu", "memory", "memoryAllocated", "memoryAllocatedBytes", "temp", "memoryTemp", "powerWatts",
    "powerPercent", "enforcedPowerLimitWatts", "energyJoules", "graphicsClock", "memoryClock",
    "correctedMemoryErrors", "unCorrectedMemoryErrors",
)  # fmt: skip
_OF_PROCESS = ("memoryAllocated", "memoryAllocatedBytes")


class SimulatedAmdGpu:
    """An MI300X in SPX mode, in which it is a single device.

    Args:
        index: its number.
        warmer_c: excess temperature due to its position in the chassis.
    """

    def __init__(self, index: int, warmer_c: float) -> None:
        own = (f"gpu.process.{index}.{name}" for name in _OF_PROCESS)
        self.keys = (*(f"gpu.{index}.{name}" for name in _NAMES), *own)
        self.about: dict[str, object] = {
            "index": index,
            "name": NAME,
            "uuid": f"{index:016x}",
            "pci": f"0000:{0x05 + 0x18 * index:02x}:00.0",
            "memory_bytes": _MEMORY_BYTES,
            "visible": True,
            "used": True,
        }
        self._cooled_c = 36.0 + warmer_c
        self._power_w = LaggedValue(_IDLE_W, 0.7)
        self._temp_c = LaggedValue(38.0 + warmer_c, 20.0)
        self._energy_j = RunningTotal()

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples."""
        busy, lag_s = load.busy, load.lag_s
        wanted_w = _IDLE_W + (_LIMIT_W - _IDLE_W) * load.work * load.clock
        hot_c = self._temp_c(self._cooled_c + load.heat_c + 40.0 * wanted_w / _LIMIT_W, lag_s)
        slowed = np.clip((hot_c - _SLOWDOWN_C) / 25.0, 0.0, 0.6)
        slowed_w = self._power_w(_IDLE_W + (wanted_w - _IDLE_W) * (1.0 - slowed), lag_s)
        power_w = rounded(np.minimum(slowed_w + 4.0 * z[0], _LIMIT_W))
        temp_c = rounded(np.minimum(hot_c, _SLOWDOWN_C + 3.0) + 0.3 * z[1])
        used = load.filled * _MEMORY_BYTES // 4096 * 4096.0
        own = used * 0.98
        clock = _CLOCK_MHZ * load.clock * (1.0 - slowed) * (0.92 + 0.02 * z[4])
        return [
            percent(busy + 0.01 * z[2], 0), percent(busy * load.work * 0.45 + 0.01 * z[3], 0),
            rounded(used / _MEMORY_BYTES * 100.0, 3), used, temp_c, temp_c - 6.0, power_w,
            rounded(power_w / _LIMIT_W * 100.0, 2), _LIMIT_W, self._energy_j(power_w * load.dt_s),
            rounded(np.where(busy > 0.02, clock, 132.0)), np.where(busy > 0.02, _MEMORY_CLOCK_MHZ, 900.0),
            0.0, 0.0, rounded(own / _MEMORY_BYTES * 100.0, 3), own,
        ]  # fmt: skip
