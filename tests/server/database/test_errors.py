"""Errors of the metadata store: its callers do not know SQLAlchemy."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from runvitals.server.database.tables.projects import project_star
from runvitals.server.database.tables.runs import project
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.store.errors import DeletedMeanwhile, MetadataStoreError, MetadataStoreUnavailable, QueryFailed
from tests.server.database.runs import joined


def test_a_failed_write_changes_nothing(metadata_store: MetadataStore) -> None:
    def twice(connection: Connection) -> None:
        for _ in range(2):
            connection.execute(insert(project).values(name="digits", created_ms=0))

    with pytest.raises(QueryFailed) as raised:
        metadata_store.write(twice)
    assert not isinstance(raised.value, MetadataStoreUnavailable)
    assert "UNIQUE" in str(raised.value).upper()
    joined(metadata_store, "abc", project="digits")


def test_a_row_that_another_transaction_wrote_meanwhile_is_seen(
    metadata_store: MetadataStore, kind: str
) -> None:
    digits = insert(project).values(name="digits", created_ms=0)

    def claim(connection: Connection) -> str:
        if connection.execute(select(project.c.id).where(project.c.name == "digits")).first():
            return "taken"
        if kind == "postgresql":  # in SQLite another transaction waits until this one has ended
            metadata_store.write(lambda other: other.execute(digits))
        connection.execute(digits)
        return "claimed"

    assert metadata_store.write(claim) == ("taken" if kind == "postgresql" else "claimed")
    assert metadata_store.write(claim) == "taken"


def test_a_row_that_was_deleted_after_it_was_found(metadata_store: MetadataStore) -> None:
    gone = 7

    def refer(connection: Connection) -> None:
        connection.execute(insert(project_star).values(project_id=gone, user_id=gone))

    def read(connection: Connection) -> None:
        connection.execute(select(project.c.name).where(project.c.id == gone)).one()

    for work in (refer, read):
        with pytest.raises(DeletedMeanwhile):
            metadata_store.write(work)


def test_a_taken_project_name_is_no_failure(metadata_store: MetadataStore) -> None:
    for name in ("digits", "letters"):
        joined(metadata_store, name, project=name)
    with pytest.raises(ValueError, match="the project 'letters' already exists"):
        metadata_store.projects.rename(metadata_store.projects.id("digits"), "letters", now_ms=0)


def test_a_deleted_file_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    with open_metadata_store(str(path)) as store:
        os.unlink(path)
        with pytest.raises(MetadataStoreUnavailable, match=r"metadata\.db"):
            store.projects.all(0)
        with pytest.raises(MetadataStoreUnavailable, match=r"metadata\.db"):
            joined(store, "abc")


def test_an_unreachable_database_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(MetadataStoreError) as raised:
        open_metadata_store(f"postgresql://me:secret@127.0.0.1:{port}/runs")
    text = str(raised.value)
    assert text.startswith("could not open the metadata store postgresql+psycopg://me:***@127.0.0.1:")
    assert "Connection refused; Is the server running on that host" in text
    assert not {"\n", "\t"} & set(text)
    assert "secret" not in text
