"""Simulated devices, one file a maker. Each has `keys`, and `read(load, z)`, which gives their values.

The keys are those of the real collectors, in the units of the catalogue; values come in the steps in which
real drivers count.
"""

from __future__ import annotations

from typing import Protocol

from runvitals.simulate.load import Load
from runvitals.simulate.noise import Floats, Strand


class Device(Protocol):
    """One device, or all of a maker's on a host that only make sense together.

    Attributes:
        keys: what it measures.
        about: who it is, for the facts about the machine.
    """

    keys: tuple[str, ...]
    about: dict[str, object]

    def read(self, load: Load, z: Strand) -> list[Floats | float]:
        """The values of `keys` over the next block of samples: an array, or a number that does not change."""
        ...
