"""NumPy, imported when samples are read: it takes 0.08 s of CPU, which lists of runs do not need."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def numpy_or_none() -> Any:
    """NumPy; None where it is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy
