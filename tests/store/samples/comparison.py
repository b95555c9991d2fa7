"""Compares the results of two stores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runvitals.base.buckets import Buckets, grid
from runvitals.store.samples.interface import SampleStore


def assert_equal(
    store: SampleStore, model: SampleStore, runs: Sequence[int], ranges: Sequence[tuple[int, int]]
) -> None:
    """Call all reading methods of both stores, over several time ranges."""
    for t0, t1 in ranges:
        _assert_equal_samples(store, model, runs, t0, t1)
        for points in (2, 50):
            _assert_equal_buckets(store, model, runs, t0, t1, points)
        for bucket_ms in (None, 10, 86_400_000, 7 * 86_400_000):
            _assert_equal_aggregates(store, model, runs, t0, t1, bucket_ms)
        assert store.active_runs(t0) == model.active_runs(t0)
    _assert_equal_latest(store, model, runs)
    mine, models = store.stats(), model.stats()
    assert mine.problem is None
    if not mine.unsealed_samples:
        assert (mine.runs, mine.samples) == (models.runs, models.samples)


def _assert_equal_samples(
    store: SampleStore, model: SampleStore, runs: Sequence[int], t0: int, t1: int
) -> None:
    mine, models = store.read(runs, None, t0, t1), model.read(runs, None, t0, t1)
    assert mine.damaged == []
    assert [(s.run, s.metric) for s in mine.series] == [(s.run, s.metric) for s in models.series]
    for ours, theirs in zip(mine.series, models.series, strict=True):
        assert ours.t.tolist() == theirs.t.tolist()
        assert _bits(ours.values) == _bits(theirs.values)


def _assert_equal_buckets(
    store: SampleStore, model: SampleStore, runs: Sequence[int], t0: int, t1: int, points: int
) -> None:
    on = grid(t0, t1, points)
    mine, models = store.read_buckets(runs, None, on), model.read_buckets(runs, None, on)
    assert mine.damaged == []
    assert [(s.run, s.metric) for s in mine.series] == [(s.run, s.metric) for s in models.series]
    for ours, theirs in zip(mine.series, models.series, strict=True):
        _assert_equal_bucket_values(ours.buckets, theirs.buckets)


def _assert_equal_bucket_values(mine: Buckets, models: Buckets) -> None:
    for name in ("t", "n", "min", "max", "last"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(models, name), name)
    np.testing.assert_allclose(mine.mean, models.mean, rtol=1e-9, atol=1e-6)


def _assert_equal_aggregates(
    store: SampleStore, model: SampleStore, runs: Sequence[int], t0: int, t1: int, bucket_ms: int | None
) -> None:
    for metric, group_by in ((1, None), (2, {run: run % 2 for run in runs})):
        mine = store.aggregate(metric, runs, t0, t1, bucket_ms, group_by)
        models = model.aggregate(metric, runs, t0, t1, bucket_ms, group_by)
        assert mine.damaged == []
        assert [series.group for series in mine.series] == [series.group for series in models.series]
        for ours, theirs in zip(mine.series, models.series, strict=True):
            for name in ("t", "n", "min", "max"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)
            np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-9, atol=1e-6)


def _assert_equal_latest(store: SampleStore, model: SampleStore, runs: Sequence[int]) -> None:
    mine, models = store.latest(runs), model.latest(runs)
    assert [latest.run for latest in mine] == [latest.run for latest in models]
    for ours, theirs in zip(mine, models, strict=True):
        assert ours.metrics.tolist() == theirs.metrics.tolist()
        assert ours.t.tolist() == theirs.t.tolist()
        assert _bits(ours.values) == _bits(theirs.values)


def _bits(values: object) -> list[int]:
    bits: list[int] = np.ascontiguousarray(values).view(np.uint64).tolist()
    return bits
