"""Simulated Graphcore IPUs."""

from __future__ import annotations

import numpy as np

from runvitals.tools.simulate.load import DeviceLoad, LaggedValue, RunningTotal, percent, rounded, share
from runvitals.tools.simulate.noise import Floats, NoiseBlock

NAME = "Graphcore Bow IPU"
_NAMES = (
    "average board temp (C)", "average die temp (C)", "clock (MHz)", "ipu power (W)", "ipu utilisation (%)",
    "ipu utilisation (session) (%)", "speed (GT/s)",
)  # fmt: skip


class SimulatedIpu:
    """One IPU.

    Args:
        index: its number.
        warmer_c: excess temperature due to its position in the chassis.
    """

    def __init__(self, index: int, warmer_c: float) -> None:
        self.keys = tuple(f"ipu.{index}.{name}" for name in _NAMES)
        self.about: dict[str, object] = {"index": index, "name": NAME}
        self._cooled_c = 24.0 + warmer_c
        self._die_c = LaggedValue(27.0 + warmer_c, 20.0)
        self._busy_s, self._all_s = RunningTotal(), RunningTotal()

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples."""
        power_w = rounded(58.0 + 120.0 * load.work * load.clock + 2.0 * z[0], 3)
        die_c = self._die_c(self._cooled_c + load.heat_c + 0.09 * power_w, load.lag_s)
        busy = share(load.busy * 0.9 + 0.02 * z[1])
        session = self._busy_s(busy * load.dt_s) / np.maximum(self._all_s(load.dt_s), 1.0)
        return [
            rounded(die_c - 4.0, 1), rounded(die_c, 1), rounded(1850.0 * load.clock), power_w, percent(busy),
            percent(session), 16.0,
        ]  # fmt: skip
