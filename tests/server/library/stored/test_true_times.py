"""Rows that were logged at the same time are stored at different ones, and read with their own."""

from __future__ import annotations

import numpy as np

from runvitals.server.library.stored.true_times import true_times, with_true_times

T0 = 1_760_000_000_000


def test_rows_that_have_their_own_time_get_no_column() -> None:
    times = np.array([T0, T0 + 1])
    values = np.array([[1.0], [2.0]])
    keys, columns = with_true_times(["loss"], values, times, times)
    assert (keys, columns is values) == (["loss"], True)
    assert true_times(times, None).tolist() == [T0, T0 + 1]


def test_rows_of_one_time_are_read_with_it() -> None:
    stored, logged = np.array([T0, T0 + 1, T0 + 2]), np.array([T0, T0, T0])
    keys, columns = with_true_times(["loss"], np.zeros((3, 1)), stored, logged)
    assert list(keys) == ["loss", "_time"]
    assert true_times(stored, (stored, columns[:, 1])).tolist() == logged.tolist()


def test_a_true_time_without_a_row_is_left_out() -> None:
    stored, moved = np.array([T0, T0 + 5]), np.array([T0 + 5, T0 + 7, T0 + 9])
    assert true_times(stored, (moved, np.array([T0, np.nan, 1.0]))).tolist() == [T0, T0]
    assert true_times(stored[:0], (moved, np.zeros(3))).tolist() == []
