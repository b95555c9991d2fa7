"""A sample store and its metadata store are paired; mismatches are rejected with a remedy."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.pairing import pairing
from runvitals.server.pairing.check import check_metadata_store
from runvitals.server.pairing.repair import repair
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.interface import SampleBatch, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.log import Pairing

NOW = 1_790_812_800_000


def serve(folder: Path, metadata_store: Path | None = None, run: str | None = None) -> None:
    """Open both like a server, and store ten samples of a run if one is given."""
    address = str(metadata_store or folder / "catalogue.db")
    with SqliteChunks(str(folder)) as store:
        pairing.check_metadata_store_exists(store, address)
        with open_metadata_store(address) as opened:
            pairing.pair(store, opened)
            if run is not None:
                record(store, opened, run)


def record(store: SqliteChunks, metadata_store: MetadataStore, run: str) -> int:
    (writer,) = metadata_store.writers.join([WriterRegistration(run, "monitor.node1.1", "digits")], NOW)
    schema = metadata_store.metrics.schema(["cpu", f"{run}.loss"])
    metadata_store.metrics.record_schemas([(writer.writer_id, schema.id)])
    t = NOW + 1000 * np.arange(10)
    store.append([SampleBatch(writer.lane_id, writer.writer_id, 1, schema.metric_ids, t, np.ones((10, 2)))])
    return writer.lane_id


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("used") / "store"
    serve(folder, run="otter")
    return folder


@pytest.fixture
def store(used: Path, tmp_path: Path) -> Path:
    """A store with one run, used by a server."""
    return Path(shutil.copytree(used, tmp_path / "store"))


def test_a_store_can_be_used_repeatedly(store: Path) -> None:
    serve(store, run="badger")
    serve(store)


def test_a_missing_metadata_store_is_reported_and_not_created(store: Path) -> None:
    path = store / "catalogue.db"
    path.unlink()
    with pytest.raises(StoreError, match=r"catalogue.db is missing: .*`runvitals store repair`"):
        serve(store)
    assert not path.exists()


def test_an_empty_metadata_store_is_rejected(store: Path) -> None:
    """`runvitals token create` creates one if the right one is missing."""
    (store / "catalogue.db").unlink()
    open_metadata_store(str(store / "catalogue.db")).close()
    with pytest.raises(StoreError, match=r"does not belong to the store in .*, or is new: .*store repair"):
        serve(store, run="badger")


def test_the_metadata_store_of_another_store_is_rejected(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    serve(other, run="badger")
    with pytest.raises(StoreError, match="belongs to a different store than"):
        serve(store, other / "catalogue.db", run="heron")
    serve(store, run="heron")
    serve(other, run="heron")


def test_an_older_copy_of_the_metadata_store_is_rejected(store: Path, tmp_path: Path) -> None:
    before = shutil.copy(store / "catalogue.db", tmp_path / "before.db")
    serve(store)  # no new writer, but clients may remember new ids of lists of keys
    serve(store)
    shutil.copy(before, store / "catalogue.db")
    with pytest.raises(StoreError, match="is older than the store"):
        serve(store)


def test_a_metadata_store_that_is_one_start_behind_is_accepted_and_told(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Earlier versions committed a start in the sample store first: kill -9 in between left it so."""
    before = shutil.copy(store / "catalogue.db", tmp_path / "before.db")
    with open_metadata_store(str(before)) as metadata_store:
        schema = metadata_store.metrics.schema(["cpu"])
    serve(store)
    shutil.copy(before, store / "catalogue.db")
    serve(store, run="badger")
    assert "has counted fewer server starts (1) than the store in" in caplog.text
    with open_metadata_store(str(store / "catalogue.db")) as metadata_store:
        assert metadata_store.metrics.schema(["heron.loss"]).id > schema.id + pairing.SKIPPED_IDS
    caplog.clear()
    serve(store)
    assert caplog.text == ""
    assert problems(store) == []


def test_a_start_that_fails_in_between_does_not_keep_later_ones_from_starting(store: Path) -> None:
    """The sample store is paired after the metadata store was committed."""

    class Full(SqliteChunks):
        def pair(self, pairing: Pairing) -> None:
            with open_metadata_store(str(store / "catalogue.db")) as committed:
                assert committed.issued_ids.pairing() == (pairing.id, pairing.starts)
            raise StoreUnavailable("log.db: database or disk is full")

    for _ in range(3):
        with (
            Full(str(store)) as full,
            open_metadata_store(str(store / "catalogue.db")) as metadata_store,
            pytest.raises(StoreUnavailable, match="disk is full"),
        ):
            pairing.pair(full, metadata_store)
    serve(store, run="badger")
    assert problems(store) == []


def test_a_copy_of_the_metadata_store_from_the_same_start_is_rejected(store: Path, tmp_path: Path) -> None:
    with (
        SqliteChunks(str(store)) as samples,
        open_metadata_store(str(store / "catalogue.db")) as metadata_store,
    ):
        pairing.pair(samples, metadata_store)
        source = sqlite3.connect(store / "catalogue.db")
        source.execute("VACUUM INTO ?", (str(tmp_path / "before.db"),))
        source.close()
        record(samples, metadata_store, "badger")
    os.replace(tmp_path / "before.db", store / "catalogue.db")
    with pytest.raises(StoreError, match="has ids of runs or metrics that the metadata store"):
        serve(store)


def test_a_missing_log_is_reported(store: Path) -> None:
    with SqliteChunks(str(store)) as samples:
        samples.flush()
    (store / "log.db").unlink()
    with pytest.raises(StoreError, match=r"log.db is missing: .*`runvitals store repair`"):
        SqliteChunks(str(store))
    assert not (store / "log.db").exists()


def test_a_missing_log_that_contained_all_samples_is_reported(store: Path) -> None:
    (store / "log.db").unlink()
    with pytest.raises(StoreError, match=r"the metadata store .* contains runs: .*log.db was lost"):
        serve(store)


def test_unpaired_stores_of_an_older_version_are_paired(store: Path) -> None:
    for name in ("log.db", "catalogue.db"):
        connection = sqlite3.connect(store / name)
        connection.execute("DELETE FROM pairing")
        connection.commit()
        connection.close()
    serve(store, run="badger")
    with (
        SqliteChunks(str(store)) as samples,
        open_metadata_store(str(store / "catalogue.db")) as metadata_store,
    ):
        assert samples.pairing is not None
        assert metadata_store.issued_ids.pairing() == (samples.pairing.id, samples.pairing.starts)


# Month files


def seal(folder: Path) -> Path:
    """Seal all samples of a store. Returns the month file."""
    with SqliteChunks(str(folder)) as samples:
        samples.flush()
    (path,) = folder.glob("samples-*.db")
    return path


def problems(folder: Path) -> list[str]:
    return [
        str(problem)
        for problem in (*check(str(folder)), *check_metadata_store(str(folder), str(folder / "catalogue.db")))
    ]


def stored(folder: Path) -> int:
    with SqliteChunks(str(folder)) as samples:
        return samples.stats().samples


def test_a_month_file_of_another_store_is_set_aside_reported_and_not_read(
    store: Path, tmp_path: Path
) -> None:
    ours = seal(store)
    other = tmp_path / "other"
    serve(other, run="badger")
    serve(other, run="heron")
    shutil.copy(seal(other), ours)
    assert problems(store) == [f"{ours}: the file belongs to another store"]

    with SqliteChunks(str(store)) as samples:
        assert not samples.stats().samples
        (warning,) = samples.stats().warnings
        assert f"{ours}.damaged-1 is damaged or belongs to another store, and was set aside" in warning
        assert not samples.active_runs(0)
    assert [text.partition(": ")[0] for text in problems(store)] == [f"{ours}.damaged-1"]

    changes: list[str] = []
    repair(str(store), str(store / "catalogue.db"), changes.append)
    aside = f"{ours}.of-another-store-1"
    assert f"{ours}.damaged-1 belongs to another store and was not read; renamed it to {aside}" in changes
    assert problems(store) == []
    assert not stored(store)
    os.replace(aside, seal(other))  # nothing was lost
    assert stored(other) == 40


def test_a_month_file_of_another_store_that_appears_while_in_use_is_not_read(
    store: Path, tmp_path: Path
) -> None:
    ours = seal(store)
    other = tmp_path / "other"
    serve(other, run="badger")
    theirs = seal(other)
    with SqliteChunks(str(store)) as samples:
        os.replace(theirs, ours)
        result = samples.read([1], None, 0, 2 * NOW)
        assert not result.series
        assert [damage.reason for damage in result.damaged] == [
            f"{ours}: {ours}: the file belongs to another store"
        ]
        assert samples.stats().warnings == (f"{ours}: the file belongs to another store",)


def test_a_month_file_without_store_id_is_read_and_gets_one_when_written(store: Path) -> None:
    path = seal(store)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE store")
    assert problems(store) == []
    assert stored(store) == 20
    serve(store, run="badger")
    seal(store)
    assert stored(store) == 40
    with (
        closing(sqlite3.connect(path)) as connection,
        open_metadata_store(str(store / "catalogue.db")) as metadata_store,
    ):
        (stamped,) = connection.execute("SELECT id FROM store").fetchone()
        pairing = metadata_store.issued_ids.pairing()
        assert pairing is not None
        assert stamped == pairing[0]


def test_a_store_that_lost_log_and_metadata_keeps_its_month_files(store: Path) -> None:
    seal(store)
    (store / "log.db").unlink()
    (store / "catalogue.db").unlink()
    repair(str(store), str(store / "catalogue.db"), lambda text: None)
    assert problems(store) == []
    assert stored(store) == 20


def test_a_store_that_lost_its_log_is_not_repaired_with_another_metadata_store(
    store: Path, tmp_path: Path
) -> None:
    seal(store)
    (store / "log.db").unlink()
    other = tmp_path / "other"
    serve(other, run="badger")
    with pytest.raises(StoreError, match="belongs to a different store than"):
        repair(str(store), str(other / "catalogue.db"), lambda text: None)
