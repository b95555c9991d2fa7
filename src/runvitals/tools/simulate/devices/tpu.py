"""Simulated Google TPU chips."""

from __future__ import annotations

import numpy as np

from runvitals.tools.simulate.load import DeviceLoad, RunningTotal, percent, rounded, share
from runvitals.tools.simulate.noise import Floats, NoiseBlock

NAME = "TPU v5e"
_MEMORY_BYTES = 17_179_869_184.0
_NAMES = (
    "dutyCycle", "tensorcoreUtilization", "tensorcoreIdleDuration", "memoryUsage", "memoryUsageBytes",
    "hbmCapacityTotal", "runtimeHbmUtilization", "throttleScore", "iciLinkHealth",
)  # fmt: skip


class SimulatedTpuChip:
    """One chip.

    Args:
        index: its number.
    """

    def __init__(self, index: int) -> None:
        self.keys = tuple(f"tpu.{index}.{name}" for name in _NAMES)
        self.about: dict[str, object] = {
            "index": index,
            "name": NAME,
            "pci": f"0000:00:{4 + index:02x}.0",
            "memory_bytes": int(_MEMORY_BYTES),
        }
        self._seconds = RunningTotal()
        self._worked_s = 0.0

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples."""
        now_s = self._seconds(load.dt_s)
        worked_s = np.maximum.accumulate(np.where(load.busy > 0.02, now_s, self._worked_s))
        self._worked_s = float(worked_s[-1])
        used = load.filled * _MEMORY_BYTES // 1024 * 1024.0
        slowed = load.heat_c / 40.0 + (1.0 - load.clock)
        return [
            percent(load.busy + 0.01 * z[0]), percent(load.busy * load.work * 0.66 + 0.01 * z[1]),
            now_s - worked_s, rounded(used / _MEMORY_BYTES * 100.0, 3), used, _MEMORY_BYTES,
            percent(load.busy * load.work * 0.55 + 0.01 * z[2]), rounded(10.0 * share(slowed)), 0.0,
        ]  # fmt: skip
