"""When rows of `log()` were logged, although the store has one row of a writer at a time.

Rows that were logged at the same time are stored at the milliseconds after it, with the true time in a column
of its own. Most rows have their own time, and no such column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.model.names import TRUE_TIME


def with_true_times(
    keys: Sequence[str], columns: Floats, stored_times: Integers, true: Integers
) -> tuple[Sequence[str], Floats]:
    """Return rows with a column of their true times, if one of these is not the time that it is stored at.

    Example:
        >>> with_true_times(["a"], np.array([[0.5]]), np.array([8]), np.array([7]))
        (['a', '_time'], array([[0.5, 7. ]]))
    """
    if np.array_equal(stored_times, true):
        return keys, columns
    return [*keys, TRUE_TIME], np.column_stack((columns, true))


def true_times(stored_times: Integers, column: tuple[Integers, Floats] | None) -> Floats:
    """Return when rows were logged.

    Args:
        stored_times: the times that they are stored at, ascending.
        column: of true times, with the times that these are stored at; None if no row has one.

    Example:
        >>> true_times(np.array([7, 8]), (np.array([8]), np.array([7.0]))).tolist()
        [7.0, 7.0]
    """
    times = stored_times.astype(np.float64)
    if column is None or not len(stored_times):
        return times
    moved, values = column
    row = np.minimum(np.searchsorted(stored_times, moved), len(stored_times) - 1)
    is_of_row = (stored_times[row] == moved) & ~np.isnan(values)  # a client may send the column without a row
    times[row[is_of_row]] = values[is_of_row]
    return times
