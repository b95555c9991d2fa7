"""The size of all files is right at any time, and quickly known."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event

from runvitals.server.database.tables.runs import run_file, stored_file
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.writer_registration import WriterRegistration

NOW = 1_790_000_000_000


def new_run(store: MetadataStore, name: str) -> int:
    (writer,) = store.writers.join([WriterRegistration(name, "media.node1.7.1", "digits")], NOW)
    return writer.run_id


def add(store: MetadataStore, run_id: int, first: int, count: int) -> None:
    """Add files of 10 bytes to a run, quickly."""
    numbers = range(first, first + count)
    digests = [hashlib.sha256(b"%d" % number).hexdigest() for number in numbers]
    files = [
        {"sha256": digest, "bytes": 10, "media_type": "text/plain", "created_ms": NOW} for digest in digests
    ]
    store.write(lambda connection: connection.execute(stored_file.insert(), files))

    def give(connection: Connection) -> None:
        ids = connection.execute(stored_file.select().where(stored_file.c.sha256.in_(digests))).all()
        connection.execute(run_file.insert(), [{"run_id": run_id, "file_id": row.id} for row in ids])

    store.write(give)


def remove(store: MetadataStore, run_id: int) -> int:
    store.runs.delete([run_id], NOW)
    store.runs.purge([run_id], NOW)
    return len(store.stored_files.forget_unused(100_000))


def test_the_size_of_all_files_is_right_after_each_change(
    metadata_store: MetadataStore, address: str
) -> None:
    files = metadata_store.stored_files
    assert files.total_bytes() == 0
    runs = [new_run(metadata_store, name) for name in ("first", "second", "third")]
    expected = 0
    for number, run_id in enumerate(runs):
        add(metadata_store, run_id, 5000 * number, 3000)
        expected += 30_000
        assert files.total_bytes() == files.total_bytes(anew=True) == expected
    with open_metadata_store(address) as other:  # another server, or this one after a crash
        assert other.stored_files.total_bytes() == expected
        assert remove(metadata_store, runs[0]) == 3000
        assert files.total_bytes() == expected - 30_000
        assert other.stored_files.total_bytes(anew=True) == expected - 30_000
        add(other, runs[1], 100_000, 1)
        other.stored_files.add(runs[1], StoredFile("f" * 64, 7, "text/plain"), NOW)
        other.stored_files.add(runs[2], StoredFile("f" * 64, 7, "text/plain"), NOW)
        assert files.total_bytes() == other.stored_files.total_bytes() == expected - 30_000 + 17
        assert remove(other, runs[2]) == 3000
        assert files.total_bytes(anew=True) == other.stored_files.total_bytes() == 30_017


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)  # writers of SQLite take turns
def test_a_file_counts_that_is_committed_after_later_ones(
    metadata_store: MetadataStore, address: str
) -> None:
    run_id = new_run(metadata_store, "first")
    add(metadata_store, run_id, 0, 2000)

    def slow(connection: Connection) -> None:
        late = {"sha256": "f" * 64, "bytes": 7, "media_type": "text/plain", "created_ms": NOW}
        connection.execute(stored_file.insert(), [late])
        with open_metadata_store(address) as other:
            add(other, run_id, 5000, 400)
            assert metadata_store.stored_files.total_bytes() == 24_000

    with open_metadata_store(address) as another:
        another.write(slow)
    assert metadata_store.stored_files.total_bytes() == 24_007


@contextmanager
def steps_of_sqlite(store: MetadataStore) -> Iterator[list[int]]:
    """A list that grows by one for each 1,000 steps of SQLite's virtual machine."""
    steps: list[int] = []

    def count(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(lambda: steps.append(1), 1000)

    engine = store._database.engine
    event.listen(engine, "checkout", count)
    yield steps
    event.remove(engine, "checkout", count)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_the_size_of_many_files_is_not_summed_again_for_each(metadata_store: MetadataStore) -> None:
    run_id = new_run(metadata_store, "first")
    add(metadata_store, run_id, 0, 20_000)
    with steps_of_sqlite(metadata_store) as steps:
        assert metadata_store.stored_files.total_bytes() == 200_000
        first = len(steps)
        add(metadata_store, run_id, 30_000, 1)
        steps.clear()
        assert metadata_store.stored_files.total_bytes() == 200_010
    assert len(steps) * 10 < first
