"""From one set of names in the whole store to one for each team, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, is_current, migrate
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from tests.server.database.conftest import NewAddress

T0 = 1_800_000_000_000
_ROWS = (
    "INSERT INTO project (id, name, created_ms) VALUES (3, 'digits', 1), (4, 'letters', 2)",
    """INSERT INTO run (id, uid, project_id, name, group_name, job_type, created_ms, started_ms, last_ms,
        settled_state) VALUES (5, 'otter-1', 3, 'otter', '', '', 1, 1, 2, 'finished'),
        (6, 'otter-2', 4, 'otter', '', '', 1, 1, 2, 'finished'),
        (90, 'gone', 4, 'gone', '', '', 1, 1, 2, 'finished')""",
    "INSERT INTO run_text (run_id, text) VALUES (5, 'otter')",
    "INSERT INTO run_tag (run_id, tag) VALUES (5, 'good'), (6, 'bad')",
    """INSERT INTO writer (id, run_id, name, lane_id, role, host, started_ms, last_ms, heard_ms)
        VALUES (7, 5, 'monitor.a.1', 7, 'monitor', 'a', 1, 2, 3)""",
    """INSERT INTO event (run_id, writer_id, seq, time_ms, level, name, body)
        VALUES (5, 7, 1, 1, 'info', 'x', '{}')""",
    "DELETE FROM run WHERE id = 90",
)
_OWNED = (
    "INSERT INTO entity (id, kind, name, created_ms) VALUES (1, 'team', 'vision', 1)",
    "UPDATE project SET entity_id = 1 WHERE id = 3",
)


_OF_TWO_TEAMS = (
    "INSERT INTO entity (id, kind, name, created_ms) VALUES (2, 'team', 'speech', 1), (8, 'user', 'ada', 1)",
    "INSERT INTO project (id, name, created_ms, entity_id) VALUES (31, 'digits', 1, 2)",
    """INSERT INTO run (id, uid, project_id, name, group_name, job_type, created_ms, started_ms, last_ms,
        settled_state, entity_id) VALUES (51, 'otter-1', 31, 'otter', '', '', 1, 1, 2, 'finished', 2)""",
    "UPDATE run SET entity_id = 1 WHERE id = 5",
    "INSERT INTO run_tombstone (entity_id, uid_digest, purged_ms) VALUES (2, '\\x00', 1)",
    """INSERT INTO user_account (entity_id, display_name, profile, state, org_role, access, billing_role,
        created_ms, created_via, default_entity_id)
        VALUES (8, 'Ada', '{}', 'active', 'member', 'full', 'none', 1, 'cli', 1)""",
)


@pytest.fixture
def database(empty: NewAddress) -> Iterator[Database]:
    database = Database(empty())
    yield database
    database.close()


def run_all(database: Database, statements: tuple[str, ...]) -> None:
    for statement in statements:
        database.write(lambda connection, s=statement: connection.execute(text(s)))


def rows(database: Database, query: str) -> list[tuple[object, ...]]:
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def contents(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Everything that the rows above are about."""
    queries = {
        "project": "SELECT id, name FROM project ORDER BY id",
        "run": "SELECT id, uid, project_id, last_ms FROM run ORDER BY id",
        "tag": "SELECT run_id, tag FROM run_tag ORDER BY run_id",
        "text": "SELECT run_id, text FROM run_text",
        "writer": "SELECT id, run_id FROM writer",
        "event": "SELECT run_id, writer_id FROM event",
    }
    return {name: rows(database, query) for name, query in queries.items()}


def check_references(database: Database) -> None:
    """SQLite still enforces foreign keys, and none is broken."""
    if database.is_sqlite:
        assert rows(database, "PRAGMA foreign_keys") == [(1,)]
        assert rows(database, "PRAGMA foreign_key_check") == []


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004", "0005", "0006"])
def test_a_store_of_each_version_keeps_everything(database: Database, revision: str) -> None:
    migrate(database, revision)
    if not database.is_sqlite:
        for table in ("project", "run", "writer"):
            run_all(database, (f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), 90)",))
    run_all(database, _ROWS)
    if revision >= "0005":
        run_all(database, _OWNED)
    before = contents(database)
    migrate(database)
    assert is_current(database)
    assert contents(database) == before
    check_references(database)
    owner = 1 if revision >= "0005" else None
    assert rows(database, "SELECT id, entity_id FROM run ORDER BY id") == [(5, owner), (6, None)]


def test_ids_of_deleted_rows_are_not_used_again(empty: NewAddress) -> None:
    address = empty()
    database = Database(address)
    migrate(database, "0006")
    if not database.is_sqlite:
        run_all(database, ("SELECT setval(pg_get_serial_sequence('run', 'id'), 90)",))
    run_all(database, _ROWS)
    database.close()
    with open_metadata_store(address) as metadata_store:
        [writer] = metadata_store.writers.join([WriterRegistration("new", "monitor.a.1", "digits")], T0)
        assert writer.run_id == 91


def test_there_and_back(database: Database) -> None:
    migrate(database, "0006")
    if not database.is_sqlite:
        run_all(database, ("SELECT setval(pg_get_serial_sequence('run', 'id'), 90)",))
    run_all(database, (*_ROWS, *_OWNED))
    before = contents(database)
    migrate(database, "0007")
    downgrade(database, "0006")
    assert is_current(database, "0006")
    assert contents(database) == before
    check_references(database)
    with pytest.raises(Exception, match=r"(?i)unique"):
        run_all(database, ("INSERT INTO project (name, created_ms) VALUES ('digits', 1)",))
    migrate(database, "0007")
    assert contents(database) == before
    check_references(database)


def test_nothing_is_lost_on_the_way_back(database: Database) -> None:
    migrate(database, "0007")
    run_all(database, (*_ROWS, *_OWNED, *_OF_TWO_TEAMS))
    refused(database, "several teams or users have a project 'digits'")
    run_all(database, ("UPDATE project SET name = 'numbers' WHERE id = 31",))
    refused(database, "several teams or users have a run 'otter-1'")
    run_all(database, ("DELETE FROM run WHERE id = 51",))
    refused(database, "1 runs were deleted for good")
    run_all(database, ("DELETE FROM run_tombstone",))
    refused(database, "1 users have set a default team")
    run_all(database, ("UPDATE user_account SET default_entity_id = NULL",))
    downgrade(database, "0006")
    assert rows(database, "SELECT uid FROM run ORDER BY uid") == [("otter-1",), ("otter-2",)]


def refused(database: Database, why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        downgrade(database, "0006")
    assert is_current(database, "0007")
