"""Old samples in a bucket: nothing is lost at any step, and the rest goes on while the bucket is away."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import numpy as np
import pytest

from runvitals.base import deadline
from runvitals.base.buckets import grid
from runvitals.server.pairing.repair import repair
from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.samples.cold.mover import KEPT_MS
from runvitals.store.samples.cold.storage import CACHE_FOLDER, ColdSettings
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite.backup import backup, cold_of
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.inventory import inventory
from tests.moto import aws_environment, moto_server
from tests.patience import PATIENCE_S, eventually
from tests.store.samples.conformance import ALL, DAY, T0, Conformance, batch, samples_of

__all__ = ["moto_server"]
SMALL = StoreSettings(chunk_ticks=100, pack_ticks=20, compact_ticks=200)
TINY = StoreSettings(chunk_ticks=16, pack_ticks=4, compact_ticks=32, head_bytes=20_000, log_bytes=20_000)
MINUTE = 60_000
TICKS = range(0, 1000 * MINUTE, MINUTE)
VALUES = np.sin(np.arange(1000.0))
EXPECTED = list(zip(TICKS, VALUES.tolist(), strict=True))
OBJECT_BYTES = 20_000


class Clock:
    def __init__(self) -> None:
        self.ms = T0 + DAY

    def __call__(self) -> int:
        return self.ms

    def pass_ms(self, ms: int) -> None:
        self.ms += ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(folder: str) -> str:
    """A folder for cold storage."""
    path = os.path.join(os.path.dirname(folder), "bucket")
    os.mkdir(path)
    return path


@pytest.fixture
def opened(folder: str, bucket: str, clock: Clock) -> Callable[[], SqliteChunks]:
    settings = ColdSettings(bucket, after_ms=30 * DAY, object_bytes=OBJECT_BYTES)
    return lambda: SqliteChunks(folder, SMALL, clock, settings)


def objects(bucket: str) -> list[str]:
    return sorted(name for _, _, files in os.walk(bucket) for name in files)


def fill(store: SqliteChunks, clock: Clock, runs: range = range(1, 3)) -> None:
    """Store samples of October, and let them become old."""
    store.append([batch(1, TICKS, VALUES, run=run) for run in runs])
    store.compact()
    clock.pass_ms(90 * DAY)
    store.move_to_cold_storage()  # or its own thread did it just before


def assert_complete(store: SqliteChunks, run: int = 1) -> None:
    assert samples_of(store.read([run], [1], *ALL)) == {(run, 1): EXPECTED}


class TestConformance(Conformance):
    """With cold storage for everything, a store fulfills the interface's rules."""

    @pytest.fixture
    def opened(self, folder: str, bucket: str) -> Iterator[SqliteChunks]:
        class MovesAtOnce(SqliteChunks):
            def flush(self) -> None:
                super().flush()
                super().compact()
                self.move_to_cold_storage()

        settings = ColdSettings(bucket, after_ms=DAY, object_bytes=OBJECT_BYTES)
        with MovesAtOnce(folder, TINY, lambda: T0 + 500 * DAY, settings) as store:
            yield store


def test_old_values_are_in_the_bucket_and_no_longer_on_the_disk(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        store.append([batch(1, TICKS, VALUES)])
        store.compact()
        before = store.stats()
        store.move_to_cold_storage()
        assert objects(bucket) == []  # they are not old enough
        clock.pass_ms(90 * DAY)
        store.move_to_cold_storage()
        assert len(objects(bucket)) == 1
        after = store.stats()
        assert after.cold_bytes > 7000 > 0 == before.cold_bytes
        assert (after.samples, after.warnings) == (1000, ())
        assert abs(store.sizes([1])[1] - 8 * 1000) < 1000
        with store._months.reader(store._months.existing()[0]) as connection:
            assert connection.execute("SELECT count(*) FROM data").fetchone() == (0,)
        assert_complete(store)
        assert objects(bucket) == objects(os.path.join(folder, CACHE_FOLDER))
    (_, month) = inventory(folder)
    assert (month.samples, month.cold_bytes) == (1000, after.cold_bytes)
    with opened() as store:
        assert_complete(store)
        store.append([batch(2, range(90 * DAY, 90 * DAY + 10), np.ones(10))])
        store.flush()
        store.move_to_cold_storage()
    assert len(objects(bucket)) == 1
    assert list(check(folder, reads_cold=True)) == []


def test_a_store_reads_what_was_moved_also_without_the_option(
    folder: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock)
    with SqliteChunks(folder, SMALL, clock) as store:
        assert_complete(store)
        assert store.latest([1])[0].values.tolist() == [VALUES[-1]]


def test_while_the_bucket_is_away_reads_say_so_and_writes_go_on(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock)
        os.rename(bucket, f"{bucket}-away")
    with opened() as store:
        result = store.read([1], [1], *ALL)
        assert result.series == []
        assert {each.reason for each in result.damaged} == {
            f"could not read samples from {bucket}: there is no folder {bucket}"
        }
        # Nothing of the bucket is needed for whole days, newest values and lists of runs.
        (series,) = store.aggregate(1, [1], T0, T0 + DAY - 1).series
        assert series.n.tolist() == [1000]
        assert store.latest([1])[0].values.tolist() == [VALUES[-1]]
        store.append([batch(2, [90 * DAY], [5.0])])
        store.flush()
        assert samples_of(store.read([1], [1], T0 + 80 * DAY, ALL[1])) == {(1, 1): [(90 * DAY, 5.0)]}
        stats = store.stats()
        assert stats.problem is None
        assert any(bucket in warning for warning in stats.warnings)
        os.rename(f"{bucket}-away", bucket)
        eventually(lambda: not store.stats().warnings)
        eventually(lambda: store.stats().threads["store-cold"] is None)
        assert samples_of(store.read([1], [1], T0, T0 + DAY)) == {(1, 1): EXPECTED}
    assert list(check(folder)) == []


def test_a_late_sample_waits_until_its_chunk_can_be_read(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    expected = [(t, 7.0 if t == 5 * MINUTE else value) for t, value in EXPECTED]
    with opened() as store:
        fill(store, clock)
        os.rename(bucket, f"{bucket}-away")
        store.append([batch(2, [5 * MINUTE], [7.0])])
        with pytest.raises(StoreError, match="could not read samples from"):
            store.flush()
        (visible,) = store.read([1], [1], T0 + 5 * MINUTE, T0 + 5 * MINUTE).series
        assert visible.values.tolist() == [7.0]
        # Others are sealed meanwhile.
        store.append([batch(seq, range(seq * 100, seq * 100 + 100), np.ones(100), run=9) for seq in range(5)])
        eventually(lambda: store.stats().samples > 2000)
        assert store.stats().problem is None
    os.rename(f"{bucket}-away", bucket)
    with opened() as store:
        store.flush()
        assert store.stats().unsealed_samples == 0
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): expected}
        store.compact()
        store.move_to_cold_storage()
        assert samples_of(store.read([1], [1], *ALL)) == {(1, 1): expected}
    assert list(check(folder, reads_cold=True)) == []


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("when", ["before the object is there", "before the month file refers to it"])
def test_a_move_that_was_interrupted_loses_nothing_and_leaves_nothing(
    folder: str,
    bucket: str,
    clock: Clock,
    opened: Callable[[], SqliteChunks],
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    take = FolderFileStore.take

    def killed(self: FolderFileStore, sha256: str, path: str) -> None:
        if when == "before the month file refers to it":
            take(self, sha256, path)
        raise KilledError

    store = opened()
    store.append([batch(1, TICKS, VALUES)])
    store.compact()
    clock.pass_ms(90 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(FolderFileStore, "take", killed)
        with pytest.raises(KilledError):
            store.move_to_cold_storage()
    assert_complete(store)
    # The object is not made again: the run is deleted before the store is opened again.
    store.append([batch(1, TICKS, VALUES, run=2)])
    store.delete([1])
    store.close()
    left = 1 if when == "before the month file refers to it" else 0
    with opened() as store:
        store.remove_unused_objects()
        assert len(objects(bucket)) == left
        clock.pass_ms(KEPT_MS + 1)
        store.remove_unused_objects()
        assert_complete(store, run=2)
    assert objects(bucket) == []
    assert list(check(folder)) == []


@pytest.mark.parametrize("how", ["delete", "drop"])
def test_objects_are_removed_a_week_after_they_are_not_needed(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks], how: str
) -> None:
    with opened() as store:
        fill(store, clock)
        store.delete([1])
        store.remove_unused_objects()
        clock.pass_ms(KEPT_MS + 1)
        store.remove_unused_objects()  # another run is in the same object
        assert_complete(store, run=2)
        if how == "delete":
            store.delete([2])
        else:
            store.drop_before(T0 + 40 * DAY)
        store.remove_unused_objects()
        assert len(objects(bucket)) == 1  # a backup may refer to it
    with opened() as store:
        clock.pass_ms(KEPT_MS + 1)
        store.remove_unused_objects()
        assert objects(bucket) == []
        assert store.stats().cold_bytes == 0


def test_a_size_counts_what_is_in_the_bucket(
    bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock, range(1, 9))
        size = store.stats().size_bytes
        store.append([batch(2, range(90 * DAY, 90 * DAY + 100), np.ones(100), run=9)])
        store.shrink_to(size)
        assert store.stats().size_bytes <= size
        assert len(store.read([9], None, *ALL).series[0].t) == 100


def test_the_cache_is_bounded(folder: str, bucket: str, clock: Clock) -> None:
    limit = 2 * OBJECT_BYTES
    settings = ColdSettings(bucket, after_ms=30 * DAY, cache_bytes=limit, object_bytes=OBJECT_BYTES)
    with SqliteChunks(folder, SMALL, clock, settings) as store:
        fill(store, clock, range(1, 9))
        assert len(objects(bucket)) > 2
        for run in range(1, 9):
            assert_complete(store, run)
        cache = os.path.join(folder, CACHE_FOLDER)
        assert sum(os.path.getsize(os.path.join(cache, name)) for name in os.listdir(cache)) <= limit
        for name in os.listdir(cache):  # what is damaged there is fetched again
            with open(os.path.join(cache, name), "r+b") as file:
                file.write(bytes(OBJECT_BYTES // 2))
        for run in range(1, 9):
            eventually(lambda run=run: not store.read([run], [1], *ALL).damaged)  # type: ignore[misc]
            assert_complete(store, run)


def test_a_request_does_not_wait_longer_than_its_deadline_for_an_object_that_another_fetches(
    folder: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock)
        assert store.cold is not None
        (sha256,) = store.known_objects()
        with store.cold._one_at_a_time(sha256), ThreadPoolExecutor(1) as pool:

            def read() -> None:
                with deadline.within(0.01):
                    store.read([1], [1], *ALL)

            with pytest.raises(deadline.TooSlow):
                pool.submit(read).result(timeout=PATIENCE_S)
        assert_complete(store)


def test_an_object_that_was_changed_is_not_used(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock)
    (name,) = objects(bucket)
    path = os.path.join(bucket, "samples", name[:2], name)
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"x")
    assert any("do not have the content" in str(problem) for problem in check(folder, reads_cold=True))
    with opened() as store:
        (damaged, *_) = store.read([1], [1], *ALL).damaged
        assert "does not have the content that was put there" in damaged.reason
    os.unlink(path)
    (problem,) = check(folder)
    assert str(problem).endswith(f"1 of 1 objects are missing in {bucket}, such as {name}")


def test_a_backup_refers_to_the_same_objects(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    copy = f"{folder}-copy"
    with opened() as store:
        fill(store, clock)
        backup(folder, copy)
        assert cold_of(copy) == (bucket, store.stats().cold_bytes)
        store.delete([1])
        store.remove_unused_objects()
    with SqliteChunks(copy, SMALL, clock) as store:
        assert_complete(store)
    assert list(check(copy, reads_cold=True)) == []


@pytest.mark.parametrize("damage", ["deleted", "damaged"])
def test_repair_recovers_what_is_in_the_bucket(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks], damage: str
) -> None:
    address = os.path.join(os.path.dirname(folder), "catalogue.db")
    with opened() as store:
        fill(store, clock)
        store.delete([2])  # its values are still in the object
    path = os.path.join(folder, "samples-2026-10.db")
    if damage == "deleted":
        os.unlink(path)
    else:
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) - 1000)
            file.truncate()
    lines: list[str] = []
    os.rename(bucket, f"{bucket}-away")
    with pytest.raises(StoreError, match="there is no folder"):
        repair(folder, address, lines.append)
    os.rename(f"{bucket}-away", bucket)
    repair(folder, address, lines.append)
    assert any("recovered" in line for line in lines)
    with opened() as store:
        assert_complete(store)
    assert list(check(folder, reads_cold=True)) == []


def test_a_file_without_cold_chunks_stays_readable_by_older_versions(
    folder: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock)
        store.append([batch(2, range(90 * DAY, 90 * DAY + 100), np.ones(100))])
        store.flush()
    assert versions(folder) == {"samples-2026-10.db": 2, "samples-2026-12.db": 1}


def versions(folder: str) -> dict[str, int]:
    versions_of = {}
    for name in os.listdir(folder):
        if name.startswith("samples-") and name.endswith(".db"):
            connection = sqlite3.connect(os.path.join(folder, name))
            versions_of[name] = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.close()
    return versions_of


def test_a_bucket_of_s3(folder: str, clock: Clock, moto_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws_environment(moto_server).items():
        monkeypatch.setenv(name, value)
    client: Any = boto3.client("s3")
    client.create_bucket(Bucket="cold", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    settings = ColdSettings("s3://cold/runvitals", after_ms=30 * DAY)
    with SqliteChunks(folder, SMALL, clock, settings) as store:
        fill(store, clock)
        (entries,) = client.list_objects_v2(Bucket="cold")["Contents"]
        assert entries["Key"].startswith("runvitals/samples/")
        assert_complete(store)
        store.delete([1, 2])
        store.remove_unused_objects()
        clock.pass_ms(KEPT_MS + 1)
        store.remove_unused_objects()
        assert client.list_objects_v2(Bucket="cold")["KeyCount"] == 0
    client.delete_bucket(Bucket="cold")
    client.close()


def test_a_chart_of_days_reads_nothing_from_the_bucket(
    folder: str, bucket: str, clock: Clock, opened: Callable[[], SqliteChunks]
) -> None:
    with opened() as store:
        fill(store, clock)
        (series,) = store.read_buckets([1], [1], grid(T0, T0 + 30 * DAY, 20)).series
        assert series.buckets.n.tolist() == [1000]
        assert objects(os.path.join(folder, CACHE_FOLDER)) == []
