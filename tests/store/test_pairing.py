"""A store and its catalogue belong together: what does not is refused with the way out."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from runvitals.store import pairing
from runvitals.store.catalogue import Catalogue, Joining, open_catalogue
from runvitals.store.contract import Batch, StoreError
from runvitals.store.sqlite_chunks import SqliteChunks

NOW = 1_790_812_800_000


def serve(folder: Path, catalogue: Path | None = None, run: str | None = None) -> None:
    """Start as a server does; with a run that comes, with ten samples of it."""
    address = str(catalogue or folder / "catalogue.db")
    with SqliteChunks(str(folder)) as store:
        pairing.check_catalogue_there(store, address)
        with open_catalogue(address) as opened:
            pairing.pair(store, opened)
            if run is not None:
                record(store, opened, run)


def record(store: SqliteChunks, catalogue: Catalogue, run: str) -> int:
    (who,) = catalogue.writers.join([Joining(run, "monitor.node1.1", "digits")], NOW)
    schema = catalogue.metrics.schema(["cpu", f"{run}.loss"])
    catalogue.metrics.record([(who.writer_id, schema.id)])
    t = NOW + 1000 * np.arange(10)
    store.append([Batch(who.lane_id, who.writer_id, 1, schema.metric_ids, t, np.ones((10, 2)))])
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
    open_catalogue(str(store / "catalogue.db")).close()
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
    with SqliteChunks(str(store)) as samples, open_catalogue(str(store / "catalogue.db")) as catalogue:
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
    with SqliteChunks(str(store)) as samples, open_catalogue(str(store / "catalogue.db")) as catalogue:
        assert samples.pairing is not None
        assert catalogue.numbers.pairing() == (samples.pairing.id, samples.pairing.starts)
