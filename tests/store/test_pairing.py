"""A store and its catalogue belong together: what does not is refused with the way out."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from runvitals.store import pairing
from runvitals.store.check import check_catalogue
from runvitals.store.metadata import MetadataStore, WriterRegistration, open_metadata_store
from runvitals.store.repair import repair
from runvitals.store.samples.contract import SampleBatch, StoreError
from runvitals.store.samples.sqlite_chunks import SqliteChunks
from runvitals.store.samples.sqlite_chunks.check import check

NOW = 1_790_812_800_000


def serve(folder: Path, catalogue: Path | None = None, run: str | None = None) -> None:
    """Start as a server does; with a run that comes, with ten samples of it."""
    address = str(catalogue or folder / "catalogue.db")
    with SqliteChunks(str(folder)) as store:
        pairing.check_catalogue_there(store, address)
        with open_metadata_store(address) as opened:
            pairing.pair(store, opened)
            if run is not None:
                record(store, opened, run)


def record(store: SqliteChunks, catalogue: MetadataStore, run: str) -> int:
    (who,) = catalogue.writers.join([WriterRegistration(run, "monitor.node1.1", "digits")], NOW)
    schema = catalogue.metrics.schema(["cpu", f"{run}.loss"])
    catalogue.metrics.record([(who.writer_id, schema.id)])
    t = NOW + 1000 * np.arange(10)
    store.append([SampleBatch(who.lane_id, who.writer_id, 1, schema.metric_ids, t, np.ones((10, 2)))])
    return who.lane_id


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that a server has used, with one run."""
    folder = tmp_path / "store"
    serve(folder, run="otter")
    return folder


def test_a_store_and_its_catalogue_can_be_used_again_and_again(store: Path) -> None:
    serve(store, run="badger")
    serve(store)


def test_a_catalogue_that_is_gone_is_missed_and_none_is_made(store: Path) -> None:
    path = store / "catalogue.db"
    path.unlink()
    with pytest.raises(StoreError, match=r"catalogue.db is missing: .*`runvitals store repair`"):
        serve(store)
    assert not path.exists()


def test_an_empty_catalogue_is_not_taken_for_the_stores_own(store: Path) -> None:
    """Such as `runvitals token create` makes, where the right one is gone."""
    (store / "catalogue.db").unlink()
    open_metadata_store(str(store / "catalogue.db")).close()
    with pytest.raises(StoreError, match=r"is not that of the store in .*, or is new: .*store repair"):
        serve(store, run="badger")


def test_another_stores_catalogue_is_refused(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    serve(other, run="badger")
    with pytest.raises(StoreError, match="belongs to another store than"):
        serve(store, other / "catalogue.db", run="heron")
    serve(store, run="heron")
    serve(other, run="heron")


def test_a_catalogue_that_was_put_back_from_before_is_refused(store: Path, tmp_path: Path) -> None:
    before = shutil.copy(store / "catalogue.db", tmp_path / "before.db")
    serve(store)  # nobody has joined, yet lists of keys may have got numbers that senders remember
    shutil.copy(before, store / "catalogue.db")
    with pytest.raises(StoreError, match="is older than the store"):
        serve(store)


def test_a_catalogue_that_was_put_back_from_minutes_ago_is_refused(store: Path, tmp_path: Path) -> None:
    with SqliteChunks(str(store)) as samples, open_metadata_store(str(store / "catalogue.db")) as catalogue:
        pairing.pair(samples, catalogue)
        source = sqlite3.connect(store / "catalogue.db")
        source.execute("VACUUM INTO ?", (str(tmp_path / "before.db"),))
        source.close()
        record(samples, catalogue, "badger")
    os.replace(tmp_path / "before.db", store / "catalogue.db")
    with pytest.raises(StoreError, match="has numbers of runs or metrics that the catalogue"):
        serve(store)


def test_a_log_that_is_gone_is_missed(store: Path) -> None:
    with SqliteChunks(str(store)) as samples:
        samples.flush()
    (store / "log.db").unlink()
    with pytest.raises(StoreError, match=r"log.db is missing: .*`runvitals store repair`"):
        SqliteChunks(str(store))
    assert not (store / "log.db").exists()


def test_a_log_that_is_gone_with_all_samples_in_it_is_missed(store: Path) -> None:
    (store / "log.db").unlink()
    with pytest.raises(StoreError, match=r"the catalogue .* knows runs: .*log.db was lost"):
        serve(store)


def test_a_store_from_before_the_two_were_stamped_is_taken_as_it_is(store: Path) -> None:
    for name in ("log.db", "catalogue.db"):
        connection = sqlite3.connect(store / name)
        connection.execute("DELETE FROM pairing")
        connection.commit()
        connection.close()
    serve(store, run="badger")
    with SqliteChunks(str(store)) as samples, open_metadata_store(str(store / "catalogue.db")) as catalogue:
        assert samples.pairing is not None
        assert catalogue.numbers.pairing() == (samples.pairing.id, samples.pairing.starts)


# The files of months


def seal(folder: Path) -> Path:
    """Seal all samples of a store; the file of their month."""
    with SqliteChunks(str(folder)) as samples:
        samples.flush()
    (path,) = folder.glob("samples-*.db")
    return path


def problems(folder: Path) -> list[str]:
    return [
        str(one) for one in (*check(str(folder)), *check_catalogue(str(folder), str(folder / "catalogue.db")))
    ]


def stored(folder: Path) -> int:
    with SqliteChunks(str(folder)) as samples:
        return samples.stats().samples


def test_another_stores_month_is_set_aside_told_and_never_shown(store: Path, tmp_path: Path) -> None:
    ours = seal(store)
    other = tmp_path / "other"
    serve(other, run="badger")
    serve(other, run="heron")
    shutil.copy(seal(other), ours)
    assert problems(store) == [f"{ours}: it is another store's"]

    with SqliteChunks(str(store)) as samples:
        assert not samples.stats().samples
        (warning,) = samples.stats().warnings
        assert f"{ours}.damaged-1 is damaged or another store's, and set aside" in warning
        assert not samples.active_runs(0)
    assert [text.partition(": ")[0] for text in problems(store)] == [f"{ours}.damaged-1"]

    said: list[str] = []
    repair(str(store), str(store / "catalogue.db"), said.append)
    aside = f"{ours}.of-another-store-1"
    assert f"{ours}.damaged-1 is another store's: nothing was read of it; it is now {aside}" in said
    assert problems(store) == []
    assert not stored(store)
    os.replace(aside, seal(other))  # nothing was lost of it
    assert stored(other) == 40


def test_another_stores_month_that_comes_while_a_server_runs_is_not_read(store: Path, tmp_path: Path) -> None:
    ours = seal(store)
    other = tmp_path / "other"
    serve(other, run="badger")
    theirs = seal(other)
    with SqliteChunks(str(store)) as samples:
        os.replace(theirs, ours)
        answer = samples.read([1], None, 0, 2 * NOW)
        assert not answer.series
        assert [one.reason for one in answer.damaged] == [f"{ours}: {ours}: it is another store's"]
        assert samples.stats().warnings == (f"{ours}: it is another store's",)


def test_a_month_from_before_they_were_stamped_is_read_and_stamped_once_written(store: Path) -> None:
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
        open_metadata_store(str(store / "catalogue.db")) as catalogue,
    ):
        (stamped,) = connection.execute("SELECT id FROM store").fetchone()
        known = catalogue.numbers.pairing()
        assert known is not None
        assert stamped == known[0]


def test_a_store_whose_log_and_catalogue_were_lost_keeps_its_months(store: Path) -> None:
    seal(store)
    (store / "log.db").unlink()
    (store / "catalogue.db").unlink()
    repair(str(store), str(store / "catalogue.db"), lambda text: None)
    assert problems(store) == []
    assert stored(store) == 20


def test_a_store_whose_log_was_lost_is_not_repaired_with_another_catalogue(
    store: Path, tmp_path: Path
) -> None:
    seal(store)
    (store / "log.db").unlink()
    other = tmp_path / "other"
    serve(other, run="badger")
    with pytest.raises(StoreError, match="belongs to another store than"):
        repair(str(store), str(other / "catalogue.db"), lambda text: None)
