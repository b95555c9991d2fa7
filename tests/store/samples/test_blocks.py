"""Samples in memory, grouped by the metrics that share their times."""

from __future__ import annotations

import numpy as np

from runvitals.store.samples.sqlite.blocks import groups, on_disk
from tests.processor_time import measured


def test_metrics_of_the_same_sets_of_columns_are_one_group() -> None:
    t = np.array([1, 2])
    blocks = [on_disk((1, 2, 3), t, np.full((2, 3), 1.0)), on_disk((2, 3, 4), t + 2, np.full((2, 3), 2.0))]
    times = {group.metrics: group.t.tolist() for group in groups(blocks)}
    assert times == {(1,): [1, 2], (2, 3): [1, 2, 3, 4], (4,): [3, 4]}
    assert [group.metrics for group in groups(blocks, {1, 3})] == [(1,), (3,)]


def test_grouping_many_metrics_takes_linear_time() -> None:
    count = 30_000
    t, values = np.array([1]), np.ones((1, count))
    blocks = [on_disk(tuple(range(first, first + count)), t, values) for first in (0, count, 2 * count)]
    with measured() as cost:
        assert sum(len(group.metrics) for group in groups(blocks)) == 3 * count
    assert cost.times < 75, "to hash all columns for each takes 750 times as long as a million additions"
