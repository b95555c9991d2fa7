"""The steps of a training in the order in which they were logged. Requires numpy."""

from __future__ import annotations

from typing import Final

import numpy as np

from runvitals.base.buckets import Floats, Integers

_DISTANCES: Final = 3.0
"""A step that is so many usual distances lower than the one before is that of a resumed training."""


def fall_places(steps: Floats) -> Integers:
    """Return where steps fall back by more than some disorder: a training was resumed there.

    Example:
        >>> fall_places(np.array([1.0, 2, 4, 3, 5, 6, 2, 3, 4]))
        array([6])
    """
    changes = np.diff(steps)
    rising = changes[changes > 0]
    usual = float(np.median(rising)) if len(rising) else 1.0
    return np.flatnonzero(changes < -_DISTANCES * usual) + 1
