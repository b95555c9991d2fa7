"""Reopening, compacting, backing up and shrinking a store."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable

import numpy as np
import pytest

from runvitals.store.samples.interface import CommitAck, StoreError
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite.backup import backup
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.inventory import inventory
from runvitals.store.samples.sqlite.log import Log
from tests.patience import PATIENCE_S
from tests.store.samples.conformance import ALL, DAY, T0, batch, samples_of

SMALL = StoreSettings(chunk_ticks=100, pack_ticks=20, compact_ticks=250)


def test_duplicates_are_recognized_after_the_log_was_trimmed(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(seq, [seq], [1.0]) for seq in (1, 2, 3, 7)])
        store.flush()
        store.append([batch(1, [9], [1.0], run=2)])
        store.flush()
    with SqliteChunks(folder, SMALL) as store:
        again = [batch(seq, [seq], [5.0]) for seq in (1, 2, 3, 4, 7)]
        assert store.append(again) == CommitAck(stored=1, duplicates=4)
        assert samples_of(store.read([1], [1], *ALL))[1, 1] == [
            (1, 1.0),
            (2, 1.0),
            (3, 1.0),
            (4, 5.0),
            (7, 1.0),
        ]


def test_sealed_batches_are_deleted_from_the_log(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(10_000), np.arange(10_000.0))])
        store.compact()
        store.append([batch(2, [20_000], [1.0])])
    connection = sqlite3.connect(os.path.join(folder, "log.db"))
    assert connection.execute("SELECT seq, length(batches) < 100 FROM log").fetchall() == [(1, 1), (2, 1)]
    connection.close()
    assert os.path.getsize(os.path.join(folder, "log.db")) < 10_000 * 8
    assert list(check(folder)) == []
    with SqliteChunks(folder, SMALL) as store:
        assert store.append([batch(1, [5], [7.0]), batch(2, [6], [7.0])]) == CommitAck(stored=0, duplicates=2)
        assert len(samples_of(store.read([1], [1], *ALL))[1, 1]) == 10_001


def test_a_short_remainder_is_merged_into_the_last_chunk(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        for seq in range(7):
            store.append([batch(seq, range(seq * 100, seq * 100 + 100), np.arange(seq, seq + 100.0))])
            store.flush()
        store.compact()
        expected = [(t, float(t // 100 + t % 100)) for t in range(700)]
        assert samples_of(store.read([1], [1], *ALL))[1, 1] == expected
    connection = sqlite3.connect(os.path.join(folder, "samples-2026-10.db"))
    assert connection.execute("SELECT ticks FROM chunk ORDER BY t0").fetchall() == [(200,), (200,), (300,)]
    connection.close()


@pytest.mark.parametrize("sealed", [False, True])
def test_deleted_runs_stay_deleted(folder: str, sealed: bool) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(200), np.arange(200.0), run=run) for run in (1, 2)])
        if sealed:
            store.compact()
        store.delete([1])
        store.append([batch(2, [3], [7.0], run=1)])
    assert list(check(folder)) == []
    with SqliteChunks(folder, SMALL) as store:
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(3, 7.0)]}
        assert len(samples_of(store.read([2], [1], *ALL))[2, 1]) == 200
        store.compact()
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(3, 7.0)]}
    assert list(check(folder)) == []


def test_an_interrupted_deletion_is_finished(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(200), np.arange(200.0), run=run) for run in (1, 2)])
        store.flush()
    interrupted = Log(os.path.join(folder, "log.db"))
    interrupted.delete(1)
    interrupted.close()
    with SqliteChunks(folder, SMALL) as store:
        assert list(samples_of(store.read([1, 2], [1], *ALL))) == [(2, 1)]
        assert store.append([batch(1, [0], [5.0])]) == CommitAck(1, 0)
    with SqliteChunks(folder, SMALL) as store:  # and not repeated
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(0, 5.0)]}


def test_long_runs_are_stored_in_chunks_and_short_ones_in_packs(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(15), np.arange(15.0), run=2)])
        for seq in range(10):
            store.append([batch(seq, range(seq * 100, seq * 100 + 100), np.full(100, 1.0))])
            store.flush()
        (_, month) = inventory(folder)
        assert (month.runs, month.samples, month.chunks, month.packs) == (2, 1015, 10, 1)
        before = samples_of(store.read([1, 2], None, *ALL))
        store.compact()
        (_, month) = inventory(folder)
        assert (month.runs, month.samples, month.chunks, month.packs) == (2, 1015, 5, 1)  # 200 each, not 300
        assert samples_of(store.read([1, 2], None, *ALL)) == before
    assert list(check(folder)) == []


def test_samples_are_stored_in_the_file_of_their_month(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(-DAY, 40 * DAY, DAY // 4), np.arange(164.0))])
        store.flush()
        assert [os.path.basename(file.path) for file in inventory(folder)] == [
            "log.db",
            "samples-2026-09.db",
            "samples-2026-10.db",
            "samples-2026-11.db",
        ]
        assert [file.samples for file in inventory(folder)] == [None, 4, 124, 36]
        assert len(samples_of(store.read([1], [1], *ALL))[1, 1]) == 164


def test_old_samples_are_deleted_with_their_files(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(0, 80 * DAY, DAY // 8), np.ones(640), run=run) for run in (1, 2)])
        store.append([batch(1, range(50), np.ones(50), run=3)])
        store.compact()
        store.drop_before(T0 + 45 * DAY)
        assert [os.path.basename(file.path) for file in inventory(folder)] == [
            "log.db",
            "samples-2026-11.db",
            "samples-2026-12.db",
        ]
        assert list(check(folder)) == []
        assert store.active_runs(0) == [1, 2]
        kept = samples_of(store.read([1], [1], *ALL))[1, 1]
        assert [t for t, _ in kept if t >= 45 * DAY] == list(range(45 * DAY, 80 * DAY, DAY // 8))
        (combined,) = store.aggregate(1, [1, 2], *ALL, DAY).series
        assert combined.n.sum() == 2 * len(kept)
        store.drop_before(T0 + 90 * DAY)
        assert len(inventory(folder)) == 1
        assert store.read([1, 2, 3], None, *ALL).series == []
    assert list(check(folder)) == []


def test_old_samples_in_memory_are_sealed_automatically(folder: str) -> None:
    settings = StoreSettings(seal_age_s=0.0)
    with SqliteChunks(folder, settings) as store:
        store.append([batch(1, [0], [1.0])])
        _wait(lambda: store.stats().unsealed_samples == 0)
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(0, 1.0)]}


def test_quiet_runs_are_compacted_automatically(folder: str) -> None:
    """According to the clock, they were sealed a day ago."""
    with SqliteChunks(folder, SMALL, clock_ms=lambda: T0) as store:
        for seq in range(4):
            store.append([batch(seq, range(seq * 100, seq * 100 + 100), np.full(100, 1.0))])
            store.flush()
    with SqliteChunks(folder, SMALL, clock_ms=lambda: T0 + DAY):
        _wait(lambda: inventory(folder)[1].chunks == 2)


def _wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    ended = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        ended.wait(0.02)
    raise AssertionError("it did not come about")


def test_memory_is_bounded_when_samples_arrive_faster_than_they_age(folder: str) -> None:
    settings = StoreSettings(head_bytes=100_000)
    with SqliteChunks(folder, settings) as store:
        for run in range(300):
            store.append([batch(1, range(10), np.ones((10, 20)), run=run, metrics=tuple(range(20)))])
            assert store.stats().unsealed_samples * 8 <= 2 * settings.head_bytes
        assert store.stats().runs == 300
        assert len(store.latest(range(300))) == 300


def test_the_log_is_bounded_by_sealing_the_runs_that_keep_it_long(folder: str) -> None:
    settings = StoreSettings(log_bytes=50_000, head_bytes=1 << 30)
    with SqliteChunks(folder, settings) as store:
        store.append([batch(1, [0], [1.0], run=99)])
        for seq in range(40):
            store.append(
                [batch(seq, range(seq * 50, seq * 50 + 50), np.ones((50, 10)), metrics=tuple(range(10)))]
            )
        _wait(lambda: _packs(folder, run=99) == 1)
        assert samples_of(store.read([99], None, *ALL)) == {(99, 1): [(0, 1.0)]}


def _packs(folder: str, run: int) -> int:
    path = os.path.join(folder, "samples-2026-10.db")
    if not os.path.exists(path):
        return 0
    connection = sqlite3.connect(path)
    try:
        (count,) = connection.execute("SELECT count(*) FROM pack WHERE run=?", (run,)).fetchone()
    finally:
        connection.close()
    return int(count)


def test_a_backup_of_a_store_in_use_contains_all_samples_acknowledged_before(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(500), np.arange(500.0))])
        ended = threading.Event()

        def write() -> None:
            seq = 2
            while not ended.is_set():
                store.append([batch(seq, [500 + seq], [1.0])])
                seq += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for copy in ("first", "second"):
                acknowledged = len(samples_of(store.read([1], [1], *ALL))[1, 1])
                assert backup(folder, folder + copy) >= 1
                assert list(check(folder + copy)) == []
                with SqliteChunks(folder + copy, SMALL) as copied:
                    assert len(samples_of(copied.read([1], [1], *ALL))[1, 1]) >= acknowledged
                store.flush()
        finally:
            ended.set()
            writer.join()


def test_a_backup_needs_a_store_and_an_empty_folder(folder: str) -> None:
    with pytest.raises(StoreError, match="there is no store in"):
        backup(folder, folder + "-copy")
    SqliteChunks(folder).close()
    with pytest.raises(StoreError, match="is not empty"):
        backup(folder, folder)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: os.PathLike[str]) -> None:
    file = os.path.join(tmp_path, "file")
    with open(file, "w"):
        pass
    with pytest.raises(StoreError, match=r"could not create the store in .*/file/store: Not a directory"):
        SqliteChunks(os.path.join(file, "store"))


def test_a_connection_to_a_deleted_month_file_is_not_reused(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(10), np.ones(10))])
        store.flush()
        months = store._months
        (month,) = months.existing()
        with months.reader(month):  # a long read, while the month is deleted and created anew
            store.drop_before(T0 + 90 * DAY)
            store.append([batch(2, range(10), np.full(10, 2.0))])
            store.flush()
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): [(t, 2.0) for t in range(10)]}


def test_calls_queued_when_the_store_is_closed_are_run(folder: str) -> None:
    store = SqliteChunks(folder, SMALL)
    store.append([batch(1, [0], [1.0])])
    started, may_continue = threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        may_continue.wait()

    threads = [
        threading.Thread(target=work, daemon=True)
        for work in (lambda: store._maintenance.call(block), store.flush, store.close)
    ]
    threads[0].start()
    assert started.wait(PATIENCE_S)
    threads[1].start()
    _wait(lambda: len(store._maintenance._calls) == 1)
    threads[2].start()
    _wait(store._maintenance.thread.closing.is_set)
    may_continue.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert [file.samples for file in inventory(folder)] == [None, 1]
