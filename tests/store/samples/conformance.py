"""Tests of the interface for any sample store: subclass `Conformance` and override the fixture `opened`.

class TestMyStore(Conformance):
    @pytest.fixture
    def opened(self, tmp_path):
        with MyStore(tmp_path) as store:
            yield store
"""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor, wait
from typing import cast

import numpy as np
import pytest

from runvitals.base.buckets import Grid, grid
from runvitals.store.samples.interface import (
    END_OF_TIME_MS,
    CommitAck,
    MetricAggregate,
    ReadResult,
    SampleBatch,
    SampleStore,
    SeriesSamples,
)
from tests.patience import PATIENCE_S

T0 = 1_790_812_800_000  # 2026-10-01 00:00 UTC
DAY = 86_400_000
ALL = (0, END_OF_TIME_MS - 1)


def batch(
    seq: int,
    t: list[int] | range,
    values: object,
    run: int = 1,
    metrics: tuple[int, ...] = (1,),
    writer: int = 1,
) -> SampleBatch:
    """A batch with times relative to T0, and rows of values, or one row for all times."""
    times = np.array(t, np.int64) + T0
    rows = np.array(values, np.float64)
    rows = rows.reshape(len(times), len(metrics)) if rows.size == len(times) * len(metrics) else rows
    return SampleBatch(run, writer, seq, metrics, times, np.broadcast_to(rows, (len(times), len(metrics))))


def samples_of(result: ReadResult[SeriesSamples]) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """(run, metric) → list of (time after T0, value)."""
    assert result.damaged == []
    return {
        (series.run, series.metric): list(zip((series.t - T0).tolist(), series.values.tolist(), strict=True))
        for series in result.series
    }


def means(result: ReadResult[MetricAggregate]) -> dict[int, list[tuple[int, int, float]]]:
    """Group → list of (start of the bucket after T0, count, mean)."""
    assert result.damaged == []
    return {
        group.group: list(zip((group.t - T0).tolist(), group.n.tolist(), group.mean.tolist(), strict=True))
        for group in result.series
    }


class Conformance:
    """A test per rule of the interface. `opened` is an empty store; if `sealed`, it is flushed first."""

    @pytest.fixture
    def opened(self) -> SampleStore:
        raise NotImplementedError("the subclass opens the store")

    @pytest.fixture(params=[False, True], ids=["fresh", "flushed"])
    def sealed(self, request: pytest.FixtureRequest) -> bool:
        return bool(request.param)

    @pytest.fixture
    def store(self, opened: SampleStore, sealed: bool) -> SampleStore:
        return cast(SampleStore, _Flushing(opened)) if sealed else opened

    # Writing

    def test_capabilities(self, opened: SampleStore) -> None:
        assert isinstance(opened, SampleStore)
        assert opened.capabilities.exact_float64
        assert opened.capabilities.read_after_write_ms >= 0

    def test_appended_samples_are_readable_immediately(self, store: SampleStore) -> None:
        assert store.append([batch(1, [0, 10], [1.5, 2.5])]) == CommitAck(stored=1, duplicates=0)
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(0, 1.5), (10, 2.5)]}

    def test_stored_batches_are_ranges_of_numbers(self, store: SampleStore) -> None:
        store.append([batch(seq, [seq], [1.0]) for seq in (2, 1, 3, 7)])
        store.append([batch(5, [5], [1.0], writer=2), batch(9, [9], [1.0], run=2)])
        stored = {writer: list(ranges) for writer, ranges in store.stored_batches(1).items()}
        assert stored == {1: [(1, 3), (7, 7)], 2: [(5, 5)]}

    def test_sizes_grow_with_what_is_stored(self, store: SampleStore) -> None:
        store.append([batch(1, range(10), np.random.default_rng(1).random(10), run=1)])
        store.append([batch(1, range(1000), np.random.default_rng(2).random(1000), run=2)])
        sizes = store.sizes([1, 2, 3])
        assert sizes.keys() == {1, 2}
        assert 0 < sizes[1] < sizes[2]

    def test_values_are_returned_bit_for_bit(self, store: SampleStore) -> None:
        payload_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8_DEAD_0000_0001))[0]
        values = [-0.0, 0.0, np.inf, -np.inf, np.nan, payload_nan, 5e-324, 1.7e308, 0.1, 2.0**53 + 2]
        written = np.array(values * 40)
        store.append([batch(1, range(len(written)), written)])
        read = store.read([1], [1], *ALL).series[0].values
        assert read.view(np.uint64).tolist() == written.view(np.uint64).tolist()

    def test_a_repeated_batch_is_acknowledged_but_not_stored_again(self, store: SampleStore) -> None:
        assert store.append([batch(1, [0], [1.0])]) == CommitAck(1, 0)
        assert store.append([batch(2, [0], [2.0])]) == CommitAck(1, 0)
        mixed = store.append([batch(1, [0], [1.0]), batch(3, [5], [3.0])])
        assert (mixed, mixed.fresh) == (CommitAck(1, 1), (False, True))
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(0, 2.0), (5, 3.0)]}

    def test_run_writer_and_seq_identify_a_batch(self, store: SampleStore) -> None:
        store.append([batch(1, [0], [1.0]), batch(1, [1], [2.0], writer=2), batch(1, [2], [3.0], run=2)])
        assert samples_of(store.read([1, 2], [1], *ALL)) == {(1, 1): [(0, 1.0), (1, 2.0)], (2, 1): [(2, 3.0)]}

    def test_batches_may_arrive_in_any_order(self, store: SampleStore) -> None:
        for seq in (5, 1, 4, 2, 5, 3, 1):
            store.append([batch(seq, [seq], [float(seq)])])
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(n, float(n)) for n in range(1, 6)]}

    def test_the_last_write_wins(self, store: SampleStore) -> None:
        store.append([batch(1, range(100), np.arange(100.0))])
        store.append([batch(2, [30, 30, 70], [[-1.0], [-2.0], [np.nan]])])
        read = dict(samples_of(store.read([1], [1], *ALL))[1, 1])
        assert len(read) == 100
        assert (read[29], read[30], read[31]) == (29.0, -2.0, 31.0)
        assert np.isnan(read[70])

    def test_the_last_write_wins_across_columns_and_writers(self, store: SampleStore) -> None:
        store.append([batch(1, [0, 1], [[1.0, 2.0], [3.0, 4.0]], metrics=(1, 2))])
        store.append([batch(1, [1], [[9.0, 8.0]], metrics=(2, 3), writer=2)])
        store.append([batch(2, [1], [[7.0]], metrics=(1,))])
        assert samples_of(store.read([1], None, *ALL)) == {
            (1, 1): [(0, 1.0), (1, 7.0)],
            (1, 2): [(0, 2.0), (1, 9.0)],
            (1, 3): [(1, 8.0)],
        }

    def test_gaps_overwrite_values_and_values_overwrite_gaps(self, store: SampleStore) -> None:
        store.append([batch(1, [0, 1], [1.0, np.nan])])
        store.append([batch(2, [0, 1], [np.nan, 2.0])])
        (t_first, first), (_, second) = samples_of(store.read([1], [1], *ALL))[1, 1]
        assert (t_first, second) == (0, 2.0)
        assert np.isnan(first)

    def test_samples_may_be_older_than_earlier_ones(self, store: SampleStore) -> None:
        for seq, start in enumerate((1000, 0, 500, 490)):
            store.append([batch(seq, range(start, start + 20), np.arange(20.0))])
        times = store.read([1], [1], *ALL).series[0].t - T0
        assert times.tolist() == [*range(20), *range(490, 520), *range(1000, 1020)]

    def test_a_batch_may_be_empty(self, store: SampleStore) -> None:
        empty = SampleBatch(1, 1, 1, (1, 2), np.empty(0, np.int64), np.empty((0, 2)))
        assert store.append([empty]) == CommitAck(1, 0)
        assert store.append([empty]) == CommitAck(0, 1)
        assert store.append([]) == CommitAck(0, 0)
        assert samples_of(store.read([1], None, *ALL)) == {}

    @pytest.mark.parametrize(
        ("wrong", "text"),
        [
            (batch(-1, [0], [1.0]), "seq must be"),
            (batch(1, [0], [1.0], run=2**63), "run must be"),
            (batch(1, [0], [1.0], metrics=(-1,)), "metrics must be"),
            (batch(1, [0], [[1.0, 2.0]], metrics=(4, 4)), "a metric occurs more than once"),
            (batch(1, [-T0 - 1], [1.0]), "times must be"),
            (batch(1, [END_OF_TIME_MS], [1.0]), "times must be"),
            (
                SampleBatch(1, 1, 1, (1,), np.array([T0]), np.ones((2, 1))),
                "values must be 1 rows × 1 metrics",
            ),
            (SampleBatch(1, 1, 1, (1,), np.array([T0]), np.ones((1, 1), np.float32)), "float64"),
        ],
    )
    def test_an_invalid_batch_is_rejected_with_all_others(
        self, opened: SampleStore, wrong: SampleBatch, text: str
    ) -> None:
        with pytest.raises(ValueError, match=text):
            opened.append([batch(1, [0], [1.0], run=5), wrong])
        assert opened.read([1, 5], None, *ALL).series == []
        assert opened.append([batch(1, [0], [1.0], run=5)]) == CommitAck(1, 0)

    def test_many_threads_may_append_concurrently(self, opened: SampleStore) -> None:
        def post(writer: int) -> int:
            return sum(
                opened.append([batch(seq, [seq], [1.0], run=writer, writer=writer)]).stored
                for seq in range(25)
            )

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(post, range(8))) == 200
        assert {key: len(rows) for key, rows in samples_of(opened.read(range(8), None, *ALL)).items()} == {
            (run, 1): 25 for run in range(8)
        }

    def test_submit_does_not_block(self, opened: SampleStore) -> None:
        futures = [opened.submit([batch(seq, [seq], [1.0])]) for seq in range(20)]
        assert not wait(futures, timeout=PATIENCE_S).not_done
        assert [future.result() for future in futures] == [CommitAck(1, 0)] * 20

    # Reading

    def test_a_range_includes_both_ends(self, store: SampleStore) -> None:
        store.append([batch(1, range(0, 100, 10), np.arange(10.0))])
        assert samples_of(store.read([1], [1], T0 + 20, T0 + 40)) == {
            (1, 1): [(20, 2.0), (30, 3.0), (40, 4.0)]
        }
        assert samples_of(store.read([1], [1], T0 + 21, T0 + 29)) == {}

    def test_series_are_ordered_by_run_as_given_then_by_metric(self, store: SampleStore) -> None:
        store.append([batch(1, [0], [[1.0, 2.0]], run=run, metrics=(9, 4)) for run in (3, 1, 2)])
        series = store.read([2, 3, 7], [9, 4, 5], *ALL).series
        assert [(series.run, series.metric) for series in series] == [(2, 4), (2, 9), (3, 4), (3, 9)]
        assert [series.metric for series in store.read([1], None, *ALL).series] == [4, 9]

    def test_buckets_are_complete_at_both_ends(self, store: SampleStore) -> None:
        store.append([batch(1, range(1000), np.arange(1000.0))])
        on = grid(T0 + 150, T0 + 449, max_points=3)
        buckets = store.read_buckets([1], [1], on).series[0].buckets
        assert (buckets.t - T0).tolist() == [0, 200, 400]
        assert buckets.n.tolist() == [200, 200, 200]
        assert buckets.min.tolist() == [0.0, 200.0, 400.0]
        assert buckets.max.tolist() == [199.0, 399.0, 599.0]
        assert buckets.mean == pytest.approx([99.5, 299.5, 499.5])
        assert buckets.last.tolist() == [199.0, 399.0, 599.0]

    def test_a_gap_is_not_counted(self, store: SampleStore) -> None:
        store.append([batch(1, [0, 1, 2, 10], [np.nan, 4.0, np.nan, np.nan])])
        buckets = store.read_buckets([1], [1], Grid(T0, 10, 2)).series[0].buckets
        assert buckets.n.tolist() == [1, 0]
        assert (buckets.min[0], buckets.max[0], buckets.mean[0], buckets.last[0]) == (4.0, 4.0, 4.0, 4.0)
        assert np.isnan([buckets.min[1], buckets.max[1], buckets.mean[1], buckets.last[1]]).all()

    def test_one_bucket_over_everything_counts_each_sample_once(self, store: SampleStore) -> None:
        for seq, start in enumerate((0, 200, 100, 150)):
            store.append([batch(seq, range(start, start + 150), np.full(150, float(seq)))])
        buckets = store.read_buckets([1], [1], Grid(T0 - 1000, 10_000, 1)).series[0].buckets
        assert buckets.n.tolist() == [350]
        assert buckets.mean[0] == pytest.approx((100 * 0 + 50 * 2 + 150 * 3 + 50 * 1) / 350)
        assert buckets.last[0] == 1.0

    # The newest values

    def test_latest_is_the_newest_value_of_each_metric(self, store: SampleStore) -> None:
        store.append([batch(1, [0, 5], [[1.0, 2.0], [3.0, np.nan]], metrics=(1, 2))])
        store.append([batch(2, [3], [[9.0]], metrics=(1,)), batch(1, [4], [-0.0], run=2)])
        first, second = store.latest([1, 7, 2])
        assert (first.run, first.metrics.tolist(), first.values.tolist()) == (1, [1, 2], [3.0, 2.0])
        assert (first.t - T0).tolist() == [5, 0]
        assert (second.run, str(second.values[0])) == (2, "-0.0")

    def test_last_times_include_gaps(self, store: SampleStore) -> None:
        store.append([batch(1, [0, 10], [1.5, np.nan]), batch(2, [5], [2.5], run=2)])
        assert store.last_times([2, 1, 7]) == {1: T0 + 10, 2: T0 + 5}
        store.flush()
        assert store.last_times([2, 1, 7]) == {1: T0 + 10, 2: T0 + 5}

    def test_latest_returns_an_earlier_value_if_the_newest_became_a_gap(self, store: SampleStore) -> None:
        store.append([batch(1, range(50), np.arange(50.0))])
        store.append([batch(2, [48, 49], [np.nan, np.nan])])
        assert [(latest.t[0] - T0, latest.values[0]) for latest in store.latest([1])] == [(47, 47.0)]
        store.append([batch(3, range(48), np.full(48, np.nan))])
        assert store.latest([1]) == []

    def test_active_runs_have_a_sample_since_a_time(self, store: SampleStore) -> None:
        store.append([batch(1, [run * 100], [np.nan], run=run) for run in (3, 1, 2)])
        assert store.active_runs(T0 + 200) == [2, 3]
        assert store.active_runs(T0 + 301) == []

    # Over many runs

    def test_aggregates_are_exact_at_both_ends(self, store: SampleStore) -> None:
        times = range(0, 5 * DAY, DAY // 40)
        store.append([batch(1, times, np.arange(len(times)) * run, run=run) for run in (1, 2)])
        t0, t1 = DAY // 2 + 1, 4 * DAY + DAY // 2
        inside = np.array([n for n, t in enumerate(times) if t0 <= t <= t1])

        combined = store.aggregate(1, [1, 2], T0 + t0, T0 + t1).series[0]
        assert (combined.group, combined.t.tolist(), combined.n.tolist()) == (0, [T0 + t0], [2 * len(inside)])
        assert (combined.min[0], combined.max[0]) == (inside[0], 2 * inside[-1])
        assert combined.mean[0] == pytest.approx(inside.mean() * 1.5)

        daily = means(store.aggregate(1, [1, 2], T0 + t0, T0 + t1, DAY, {1: 10, 2: 5}))
        assert list(daily) == [5, 10]
        assert [t for t, _, _ in daily[5]] == [0, DAY, 2 * DAY, 3 * DAY, 4 * DAY]
        assert [n for _, n, _ in daily[10]] == [19, 40, 40, 40, 21]
        assert daily[10][1][2] == pytest.approx(59.5)

    def test_aggregates_of_narrow_buckets(self, store: SampleStore) -> None:
        store.append([batch(1, range(100), np.arange(100.0), run=run) for run in range(5)])
        (aggregate,) = store.aggregate(1, range(5), T0 + 25, T0 + 44, 10).series
        assert ((aggregate.t - T0).tolist(), aggregate.n.tolist()) == ([20, 30, 40], [25, 50, 25])
        assert aggregate.mean == pytest.approx([27.0, 34.5, 42.0])

    def test_aggregates_omit_gaps_and_runs_without_the_metric(self, store: SampleStore) -> None:
        store.append([batch(1, [0, 1], [np.nan, np.nan], run=1), batch(1, [0, 1], [np.nan, 3.0], run=2)])
        groups = means(store.aggregate(1, [1, 2, 3], T0, T0 + 9, None, {1: 1, 2: 2, 3: 3}))
        assert groups == {2: [(0, 1, 3.0)]}
        assert means(store.aggregate(2, [1, 2], T0, T0 + 9)) == {}

    def test_aggregates_include_later_writes(self, store: SampleStore) -> None:
        times = range(0, 3 * DAY, DAY // 20)
        store.append([batch(1, times, np.full(60, 1.0))])
        assert means(store.aggregate(1, [1], T0, T0 + 3 * DAY)) == {0: [(0, 60, 1.0)]}
        store.append([batch(2, [DAY + DAY // 2, DAY + 1], [61.0, 1.0])])
        (aggregate,) = store.aggregate(1, [1], T0, T0 + 3 * DAY).series
        assert (aggregate.n.tolist(), aggregate.mean[0]) == ([61], pytest.approx(121 / 61))

    # Deleting

    def test_a_deleted_run_is_forgotten_completely(self, store: SampleStore) -> None:
        store.append([batch(1, range(50), np.arange(50.0), run=run) for run in (1, 2)])
        store.delete([1, 9])
        assert list(samples_of(store.read([1, 2], None, *ALL))) == [(2, 1)]
        assert store.active_runs(0) == [2]
        assert store.latest([1]) == []
        assert store.append([batch(1, [5], [7.0], run=1)]) == CommitAck(1, 0)
        assert samples_of(store.read([1], None, *ALL)) == {(1, 1): [(5, 7.0)]}

    def test_drop_before_keeps_everything_newer(self, store: SampleStore) -> None:
        days = range(0, 90 * DAY, DAY // 4)
        store.append([batch(1, days, np.arange(360.0)), batch(1, [5], [1.0], run=2)])
        store.flush()
        cut = 45 * DAY + DAY // 3
        store.drop_before(T0 + cut)
        left = samples_of(store.read([1], [1], *ALL))[1, 1]
        whole = [(t, float(n)) for n, t in enumerate(days)]
        assert left[-len([t for t, _ in whole if t >= cut]) :] == [row for row in whole if row[0] >= cut]
        assert set(left) <= set(whole)
        assert len(left) < len(whole)

    def test_shrink_to_deletes_the_oldest_samples(self, opened: SampleStore) -> None:
        rng = np.random.default_rng(1)
        for seq in range(30):
            times = range(seq * DAY, seq * DAY + 400)
            opened.append([batch(seq, times, rng.normal(size=(400, 20)), metrics=tuple(range(20)))])
        opened.flush()
        opened.shrink_to(opened.stats().size_bytes)  # release free space first
        before, samples = opened.stats().size_bytes, opened.stats().samples
        opened.shrink_to(before // 2)
        assert opened.stats().size_bytes <= before // 2
        assert 0 < opened.stats().samples < samples
        kept = opened.read([1], [3], *ALL).series[0].t
        assert kept[-1] == T0 + 29 * DAY + 399
        assert kept[0] > T0

    # Statistics and closing

    def test_stats_count(self, opened: SampleStore) -> None:
        opened.append([batch(1, range(30), np.ones((30, 2)), metrics=(1, 2))])
        stats = opened.stats()
        assert stats.samples + stats.unsealed_samples in (60, 120)  # twice while they are sealed
        opened.flush()
        stats = opened.stats()
        assert (stats.runs, stats.samples, stats.unsealed_samples, stats.problem) == (1, 60, 0, None)
        assert stats.size_bytes > 0

    def test_a_closed_store_rejects_batches(self, opened: SampleStore) -> None:
        opened.close()
        opened.close()
        with pytest.raises(OSError, match="closed"):
            opened.append([batch(1, [0], [1.0])])


class _Flushing:
    """A store that is flushed before each read."""

    def __init__(self, store: SampleStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        if name.startswith(("read", "active", "latest", "sizes", "aggregate", "delete")):
            self._store.flush()
        return getattr(self._store, name)
