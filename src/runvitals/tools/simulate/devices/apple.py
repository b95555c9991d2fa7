"""A simulated Apple M3 Max: GPU, CPU clusters and Neural Engine."""

from __future__ import annotations

import numpy as np

from runvitals.tools.simulate.load import DeviceLoad, LaggedValue, percent, rounded, share
from runvitals.tools.simulate.noise import Floats, NoiseBlock

NAME = "Apple M3 Max"
_MEMORY_BYTES = 68_719_476_736.0
_GPU_LIMIT_W = 45.0
_KEYS = (
    "gpu.0.gpu", "gpu.0.memoryAllocated", "gpu.0.memoryAllocatedBytes", "gpu.0.temp", "gpu.0.powerWatts",
    "gpu.0.powerPercent", "gpu.0.graphicsClock", "gpu.0.recoveryCount", "cpu.ecpu_percent",
    "cpu.pcpu_percent", "cpu.ecpu_freq", "cpu.pcpu_freq", "cpu.avg_temp", "cpu.powerWatts", "ane.power",
    "system.powerWatts", "memory.used", "memory.used_percent",
)  # fmt: skip


class SimulatedAppleChip:
    """An M3 Max."""

    def __init__(self) -> None:
        self.keys: tuple[str, ...] = _KEYS
        self.about: dict[str, object] = {
            "name": NAME,
            "ecpu_cores": 4,
            "pcpu_cores": 12,
            "gpu_cores": 40,
            "memory_gb": 64,
        }
        self._gpu_w = LaggedValue(0.1, 0.7)
        self._gpu_c, self._cpu_c = LaggedValue(38.0, 30.0), LaggedValue(38.0, 30.0)

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples."""
        busy, lag_s = load.busy, load.lag_s
        wanted_w = self._gpu_w(0.1 + 40.0 * load.work, lag_s)
        gpu_c = self._gpu_c(36.0 + load.heat_c + 1.25 * wanted_w, lag_s)
        slowed = 1.0 - np.clip((gpu_c - 95.0) / 40.0, 0.0, 0.4)
        gpu_w = rounded(np.maximum(wanted_w * slowed + 0.4 * z[0], 0.02), 3)
        pcpu = share(0.12 + 0.25 * busy + 0.03 * z[1])
        ecpu = share(0.30 + 0.20 * busy + 0.05 * z[2])
        cpu_w = rounded(1.0 + 30.0 * pcpu + 1.5 * ecpu, 3)
        cpu_c = self._cpu_c(36.0 + load.heat_c + 0.9 * cpu_w + 0.5 * gpu_w, lag_s)
        used = load.filled * 0.72 * _MEMORY_BYTES // 16384 * 16384.0
        of_all = used + 9.0 * 2.0**30
        return [
            percent(busy * 0.98 + 0.01 * z[3]), rounded(used / _MEMORY_BYTES * 100.0, 3), used,
            rounded(np.minimum(gpu_c, 98.0) + 0.4 * z[4], 2), gpu_w, rounded(gpu_w / _GPU_LIMIT_W * 100.0, 2),
            rounded(338.0 + 1042.0 * busy * slowed), 0.0, percent(ecpu), percent(pcpu),
            rounded(1000.0 + 1700.0 * ecpu), rounded(1200.0 + 2800.0 * pcpu),
            rounded(cpu_c + 0.4 * z[5], 2), cpu_w, 0.0, rounded(8.0 + gpu_w + cpu_w + 0.3 * z[6], 3), of_all,
            rounded(of_all / _MEMORY_BYTES * 100.0, 3),
        ]  # fmt: skip
