"""Simulated devices, one file per vendor. Each has `keys`, and `read(load, z)`, which returns their values.

Keys and units are those of the metric definitions, and values have the resolution of real drivers.
"""

from __future__ import annotations

from typing import Protocol

from runvitals.tools.simulate.load import DeviceLoad
from runvitals.tools.simulate.noise import Floats, NoiseBlock


class SimulatedDevice(Protocol):
    """A simulated device.

    Attributes:
        keys: its metrics.
        about: its description in the facts about the machine.
    """

    keys: tuple[str, ...]
    about: dict[str, object]

    def read(self, load: DeviceLoad, z: NoiseBlock) -> list[Floats | float]:
        """Return the values of `keys` over the next block of samples: for each key an array, or a constant.

        Args:
            load: the device's load in these samples.
            z: noise.
        """
        ...
