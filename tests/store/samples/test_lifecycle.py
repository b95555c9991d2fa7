"""A store over its life: opened again, compacted, backed up, shortened."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable

import numpy as np
import pytest

from runvitals.store.samples.contract import CommitAck, StoreError
from runvitals.store.samples.sqlite_chunks import Settings, SqliteChunks
from runvitals.store.samples.sqlite_chunks.backup import backup
from runvitals.store.samples.sqlite_chunks.check import check
from runvitals.store.samples.sqlite_chunks.inventory import inventory
from runvitals.store.samples.sqlite_chunks.log import Log
from tests.patience import PATIENCE_S
from tests.store.samples.conformance import ALL, DAY, T0, batch, told

SMALL = Settings(chunk_ticks=100, pack_ticks=20, compact_ticks=250)


def test_batches_are_known_after_they_left_the_log(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(seq, [seq], [1.0]) for seq in (1, 2, 3, 7)])
        store.flush()
        store.append([batch(1, [9], [1.0], run=2)])
        store.flush()
    with SqliteChunks(folder, SMALL) as store:
        again = [batch(seq, [seq], [5.0]) for seq in (1, 2, 3, 4, 7)]
        assert store.append(again) == CommitAck(stored=1, duplicates=4)
        assert told(store.read([1], [1], *ALL))[1, 1] == [(1, 1.0), (2, 1.0), (3, 1.0), (4, 5.0), (7, 1.0)]


def test_the_log_holds_nothing_of_what_is_sealed(folder: str) -> None:
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
        assert len(told(store.read([1], [1], *ALL))[1, 1]) == 10_001


def test_a_short_rest_is_joined_to_the_last_long_chunk(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        for seq in range(7):
            store.append([batch(seq, range(seq * 100, seq * 100 + 100), np.arange(seq, seq + 100.0))])
            store.flush()
        store.compact()
        expected = [(t, float(t // 100 + t % 100)) for t in range(700)]
        assert told(store.read([1], [1], *ALL))[1, 1] == expected
    connection = sqlite3.connect(os.path.join(folder, "samples-2026-10.db"))
    assert connection.execute("SELECT ticks FROM chunk ORDER BY t0").fetchall() == [(200,), (200,), (300,)]
    connection.close()


@pytest.mark.parametrize("sealed", [False, True])
def test_what_was_deleted_stays_deleted(folder: str, sealed: bool) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(200), np.arange(200.0), run=run) for run in (1, 2)])
        if sealed:
            store.compact()
        store.delete([1])
        store.append([batch(2, [3], [7.0], run=1)])
    assert list(check(folder)) == []
    with SqliteChunks(folder, SMALL) as store:
        assert told(store.read([1], [1], *ALL)) == {(1, 1): [(3, 7.0)]}
        assert len(told(store.read([2], [1], *ALL))[2, 1]) == 200
        store.compact()
        assert told(store.read([1], [1], *ALL)) == {(1, 1): [(3, 7.0)]}
    assert list(check(folder)) == []


def test_a_deletion_that_was_cut_short_is_finished(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(200), np.arange(200.0), run=run) for run in (1, 2)])
        store.flush()
    interrupted = Log(os.path.join(folder, "log.db"))
    interrupted.delete(1)
    interrupted.close()
    with SqliteChunks(folder, SMALL) as store:
        assert list(told(store.read([1, 2], [1], *ALL))) == [(2, 1)]
        assert store.append([batch(1, [0], [5.0])]) == CommitAck(1, 0)
    with SqliteChunks(folder, SMALL) as store:  # and not once more
        assert told(store.read([1], [1], *ALL)) == {(1, 1): [(0, 5.0)]}


def test_a_long_run_becomes_long_chunks_and_a_short_one_stays_a_pack(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(15), np.arange(15.0), run=2)])
        for seq in range(10):
            store.append([batch(seq, range(seq * 100, seq * 100 + 100), np.full(100, 1.0))])
            store.flush()
        (_, month) = inventory(folder)
        assert (month.runs, month.samples, month.chunks, month.packs) == (2, 1015, 10, 1)
        before = told(store.read([1, 2], None, *ALL))
        store.compact()
        (_, month) = inventory(folder)
        assert (month.runs, month.samples, month.chunks, month.packs) == (2, 1015, 5, 1)  # 200 each, not 300
        assert told(store.read([1, 2], None, *ALL)) == before
    assert list(check(folder)) == []


def test_each_sample_lies_in_the_file_of_its_month(folder: str) -> None:
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
        assert len(told(store.read([1], [1], *ALL))[1, 1]) == 164


def test_old_samples_leave_with_their_files(folder: str) -> None:
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
        kept = told(store.read([1], [1], *ALL))[1, 1]
        assert [t for t, _ in kept if t >= 45 * DAY] == list(range(45 * DAY, 80 * DAY, DAY // 8))
        (together,) = store.aggregate(1, [1, 2], *ALL, DAY).series
        assert together.n.sum() == 2 * len(kept)
        store.drop_before(T0 + 90 * DAY)
        assert len(inventory(folder)) == 1
        assert store.read([1, 2, 3], None, *ALL).series == []
    assert list(check(folder)) == []


def test_what_is_too_old_in_memory_is_sealed_by_itself(folder: str) -> None:
    settings = Settings(seal_age_s=0.0)
    with SqliteChunks(folder, settings) as store:
        store.append([batch(1, [0], [1.0])])
        _wait(lambda: store.stats().unsealed_samples == 0)
        assert told(store.read([1], [1], *ALL)) == {(1, 1): [(0, 1.0)]}


def test_quiet_runs_are_compacted_by_themselves(folder: str) -> None:
    """The clock says that a day has passed since they were sealed."""
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


def test_memory_is_bounded_while_more_comes_than_is_sealed_by_age(folder: str) -> None:
    settings = Settings(head_bytes=100_000)
    with SqliteChunks(folder, settings) as store:
        for run in range(300):
            store.append([batch(1, range(10), np.ones((10, 20)), run=run, metrics=tuple(range(20)))])
            assert store.stats().unsealed_samples * 8 <= 2 * settings.head_bytes
        assert store.stats().runs == 300
        assert len(store.latest(range(300))) == 300


def test_the_log_is_bounded_by_sealing_who_holds_it_back(folder: str) -> None:
    settings = Settings(log_bytes=50_000, head_bytes=1 << 30)
    with SqliteChunks(folder, settings) as store:
        store.append([batch(1, [0], [1.0], run=99)])
        for seq in range(40):
            store.append(
                [batch(seq, range(seq * 50, seq * 50 + 50), np.ones((50, 10)), metrics=tuple(range(10)))]
            )
        _wait(lambda: _packs(folder, run=99) == 1)
        assert told(store.read([99], None, *ALL)) == {(99, 1): [(0, 1.0)]}


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


def test_a_backup_of_a_store_in_use_has_all_that_was_acknowledged_before(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(500), np.arange(500.0))])
        ended = threading.Event()

        def go_on() -> None:
            seq = 2
            while not ended.is_set():
                store.append([batch(seq, [500 + seq], [1.0])])
                seq += 1

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            for copy in ("first", "second"):
                known = len(told(store.read([1], [1], *ALL))[1, 1])
                assert backup(folder, folder + copy) >= 1
                assert list(check(folder + copy)) == []
                with SqliteChunks(folder + copy, SMALL) as copied:
                    assert len(told(copied.read([1], [1], *ALL))[1, 1]) >= known
                store.flush()
        finally:
            ended.set()
            writer.join()


def test_a_backup_goes_into_a_folder_of_its_own(folder: str) -> None:
    with pytest.raises(StoreError, match="there is no store in"):
        backup(folder, folder + "-copy")
    SqliteChunks(folder).close()
    with pytest.raises(StoreError, match="is not empty"):
        backup(folder, folder)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: os.PathLike[str]) -> None:
    file = os.path.join(tmp_path, "file")
    with open(file, "w"):
        pass
    with pytest.raises(StoreError, match=r"the store in .*/file/store cannot be made: Not a directory"):
        SqliteChunks(os.path.join(file, "store"))


def test_a_reader_of_a_deleted_month_is_not_used_for_the_next_file_of_that_month(folder: str) -> None:
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(10), np.ones(10))])
        store.flush()
        months = store._months
        (month,) = months.there()
        with months.reader(month):  # a long read, while the month is dropped and made again
            store.drop_before(T0 + 90 * DAY)
            store.append([batch(2, range(10), np.full(10, 2.0))])
            store.flush()
        assert told(store.read([1], [1], *ALL)) == {(1, 1): [(t, 2.0) for t in range(10)]}


def test_work_that_was_queued_when_the_store_was_closed_is_done(folder: str) -> None:
    store = SqliteChunks(folder, SMALL)
    store.append([batch(1, [0], [1.0])])
    begun, may_go_on = threading.Event(), threading.Event()

    def hold_up() -> None:
        begun.set()
        may_go_on.wait()

    threads = [
        threading.Thread(target=work, daemon=True)
        for work in (lambda: store._sealer.call(hold_up), store.flush, store.close)
    ]
    threads[0].start()
    assert begun.wait(PATIENCE_S)
    threads[1].start()
    _wait(lambda: len(store._sealer._work) == 1)
    threads[2].start()
    _wait(store._sealer.thread.closing.is_set)
    may_go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert [file.samples for file in inventory(folder)] == [None, 1]
