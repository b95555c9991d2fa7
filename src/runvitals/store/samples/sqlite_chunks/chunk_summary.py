"""What is known of a chunk without decoding it: how many values, their minimum, maximum and mean, and the
last.

Kept as bytes, because SQLite keeps no NaN and makes -0.0 a 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runvitals.buckets import Buckets, Floats, Integers, combine

# age: how long before the end of the chunk the last value was, in ms.
DTYPE = np.dtype(
    [("n", "<u4"), ("age", "<u4"), ("min", "<f8"), ("max", "<f8"), ("mean", "<f8"), ("last", "<f8")]
)
Summaries = NDArray[Any]


def summarise(t: Integers, values: Floats) -> Summaries:
    """One summary for each series.

    Args:
        t: ms UTC, ascending; no longer than a month.
        values: series × times.
    """
    there = ~np.isnan(values)
    made = np.zeros(len(values), DTYPE)
    n = made["n"] = there.sum(axis=1)
    low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.where(there, values, 0.0).sum(axis=1) / n
    made["min"], made["max"] = low, high
    made["mean"] = np.minimum(np.maximum(mean, low), high)
    newest = values.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    made["last"] = np.where(n > 0, values[np.arange(len(values)), newest], np.nan)
    made["age"] = t[-1] - t[newest]
    return made


def unpack(summaries: Sequence[bytes]) -> Summaries:
    return np.frombuffer(b"".join(summaries), DTYPE)


def buckets(starts: Integers, summaries: Summaries) -> Buckets:
    """Summaries in the order of their times, each within one bucket, as buckets; `starts`: where theirs
    begin.
    """
    parts = Buckets(
        starts,
        summaries["n"].astype(np.int64),
        summaries["min"],
        summaries["max"],
        summaries["mean"],
        summaries["last"],
    )
    return combine([parts])
