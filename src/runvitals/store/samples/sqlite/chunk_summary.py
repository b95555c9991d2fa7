"""Chunk summaries: the number of values, minimum, maximum, mean and last value.

They are stored with each chunk so that it need not be decoded.

Stored as bytes, because SQLite stores NaN as NULL and -0.0 as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Buckets, Floats, Integers, combine

# age: time from the last value to the end of the chunk, in ms.
DTYPE = np.dtype(
    [("n", "<u4"), ("age", "<u4"), ("min", "<f8"), ("max", "<f8"), ("mean", "<f8"), ("last", "<f8")]
)
Summaries = NDArray[Any]


def summarize(t: Integers, values: Floats) -> Summaries:
    """Summarize each series.

    Args:
        t: ms UTC, ascending, of one month.
        values: of shape (series, times).
    """
    present = ~np.isnan(values)
    summaries = np.zeros(len(values), DTYPE)
    n = summaries["n"] = present.sum(axis=1)
    low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.where(present, values, 0.0).sum(axis=1) / n
    summaries["min"], summaries["max"] = low, high
    summaries["mean"] = np.minimum(np.maximum(mean, low), high)
    newest = values.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
    summaries["last"] = np.where(n > 0, values[np.arange(len(values)), newest], np.nan)
    summaries["age"] = t[-1] - t[newest]
    return summaries


def unpack(summaries: Sequence[bytes]) -> Summaries:
    """Unpack summaries into an array."""
    return np.frombuffer(b"".join(summaries), DTYPE)


def buckets(starts: Integers, summaries: Summaries) -> Buckets:
    """Summaries as buckets. Each is within one bucket, which begins at `starts`, ascending."""
    parts = Buckets(
        starts,
        summaries["n"].astype(np.int64),
        summaries["min"],
        summaries["max"],
        summaries["mean"],
        summaries["last"],
    )
    return combine([parts])
