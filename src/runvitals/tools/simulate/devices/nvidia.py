"""Simulated NVIDIA GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runvitals.tools.simulate.load import DeviceLoad, LaggedValue, RunningTotal, percent, rounded
from runvitals.tools.simulate.noise import Floats, NoiseBlock


@dataclass(frozen=True, slots=True)
class GpuModel:
    """Properties of a GPU model. `link_bytes_s` is the NVLink bandwidth."""

    name: str
    memory_bytes: int
    idle_w: float
    limit_w: float
    clock_mhz: float
    memory_clock_mhz: float
    link_bytes_s: float
    profiles: bool  # has profiling metrics (Hopper and newer)


H100 = GpuModel("NVIDIA H100 80GB HBM3", 85_520_809_984, 72.0, 700.0, 1980.0, 2619.0, 450e9, True)
A100 = GpuModel("NVIDIA A100-SXM4-80GB", 85_899_345_920, 58.0, 400.0, 1410.0, 1593.0, 300e9, False)

_SLOWDOWN_C = 84.0
_PCIE_BYTES_S = 25e9
_NAMES = (
    "gpu", "memory", "memoryAllocated", "memoryAllocatedBytes", "temp", "memoryTemp", "powerWatts",
    "powerPercent", "enforcedPowerLimitWatts", "energyJoules", "smClock", "memoryClock", "graphicsClock",
    "correctedMemoryErrors", "unCorrectedMemoryErrors", "encoderUtilization", "decoderUtilization",
    "pcieTxBytes", "pcieRxBytes", "nvlinkTxBytes", "nvlinkRxBytes", "throttle.swPowerCapSeconds",
    "throttle.swThermalSeconds",
)  # fmt: skip
_PROFILE = ("smActive", "smOccupancy", "pipeTensorActive", "dramActive", "pipeFp16Active", "pipeFp32Active")
_OF_PROCESS = ("gpu", "memory", "memoryAllocated", "memoryAllocatedBytes", "powerWatts", "temp")


class SimulatedNvidiaGpu:
    """One GPU.

    Args:
        index: its number.
        model: its properties.
        warmer_c: excess temperature due to its position in the chassis.
    """

    def __init__(self, index: int, model: GpuModel, warmer_c: float) -> None:
        names = (*_NAMES, *_PROFILE) if model.profiles else _NAMES
        self.keys = (*(f"gpu.{index}.{n}" for n in names), *(f"gpu.process.{index}.{n}" for n in _OF_PROCESS))
        self.about: dict[str, object] = {
            "index": index,
            "name": model.name,
            "uuid": f"GPU-00000000-0000-0000-0000-{index:012x}",
            "pci": f"0000:{0x18 + 9 * index:02x}:00.0",
            "memory_bytes": model.memory_bytes,
            "visible": True,
            "used": True,
        }
        self._model = model
        self._cooled_c = 29.0 + warmer_c
        self._power_w = LaggedValue(model.idle_w, 0.7)
        self._temp_c = LaggedValue(30.0 + warmer_c, 20.0)
        self._energy_j, self._capped_s, self._hot_s, self._errors = (
            RunningTotal(),
            RunningTotal(),
            RunningTotal(),
            RunningTotal(),
        )

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples."""
        model, busy, lag_s, dt_s = self._model, load.busy, load.lag_s, load.dt_s
        wanted_w = model.idle_w + (model.limit_w - model.idle_w) * load.work * load.clock
        # The temperature without thermal throttling.
        hot_c = self._temp_c(self._cooled_c + load.heat_c + 42.0 * wanted_w / model.limit_w, lag_s)
        slowed = np.clip((hot_c - _SLOWDOWN_C) / 25.0, 0.0, 0.6)
        clock = load.clock * (1.0 - slowed)
        work = load.work * (1.0 - slowed)
        capped_w = np.minimum(model.idle_w + (wanted_w - model.idle_w) * (1.0 - slowed), model.limit_w)
        power_w = rounded(np.minimum(self._power_w(capped_w, lag_s) + 4.0 * z[0], model.limit_w), 1)
        temp_c = rounded(np.minimum(hot_c, _SLOWDOWN_C + 3.0) + 0.3 * z[1])
        used = load.filled * model.memory_bytes // 2_097_152 * 2_097_152.0
        own = used * 0.97
        gpu = percent(busy + 0.015 * z[4], 0)
        memory = percent(busy * 0.52 * work + 0.02 * z[5], 0)
        mhz = 15.0 * rounded(model.clock_mhz * np.where(busy > 0.02, clock, 0.17) / 15.0 + 0.3 * z[6])
        tx = rounded(load.traffic * model.link_bytes_s * (0.4 + 0.01 * z[7]))
        pcie = rounded((0.004 + 0.03 * busy) * _PCIE_BYTES_S * (1.0 + 0.1 * z[8]))
        power = rounded(power_w / model.limit_w * 100.0, 2)
        values: list[Floats | float] = [
            gpu, memory, rounded(used / model.memory_bytes * 100.0, 3), used, temp_c,
            temp_c + 8.0 + rounded(6.0 * work), power_w, power, model.limit_w,
            rounded(self._energy_j(power_w * dt_s), 3), mhz, model.memory_clock_mhz, mhz,
            self._errors(((z[2] > 2.99) & (z[3] > 1.5)).astype(float)), 0.0, 0.0, 0.0, pcie, 2.0 * pcie,
            tx, tx,
            self._capped_s(dt_s * 0.4 * (wanted_w > model.limit_w * 0.98)),
            self._hot_s(dt_s * np.minimum(1.0, 6.0 * slowed)),
        ]  # fmt: skip
        if model.profiles:
            values += [
                percent(busy * (0.30 + 0.62 * work) + 0.01 * z[9]),
                percent(busy * (0.08 + 0.17 * work) + 0.005 * z[10]),
                percent(0.62 * busy * work + 0.01 * z[11]),
                percent(0.48 * busy * work + 0.01 * z[12]),
                percent(0.05 * busy * work + 0.002 * z[13]),
                percent(0.07 * busy * work + 0.002 * z[14]),
            ]
        return [*values, gpu, memory, rounded(own / model.memory_bytes * 100.0, 3), own, power_w, temp_c]
