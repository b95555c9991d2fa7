"""Migrating the metadata store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from runvitals.server.database import newest_schema
from runvitals.server.database.database import Database
from runvitals.server.database.migration import FOLDER, is_current, migrate, newest, revisions
from runvitals.server.metadata_store import open_metadata_store
from runvitals.store.errors import MetadataStoreError
from tests.patience import PATIENCE_S

_OPEN = """
import sys
from runvitals.server.database import open_metadata_store
open_metadata_store(sys.argv[1]).close()
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("alembic", "mako")))
"""


def test_revisions_match_alembic() -> None:
    scripts = ScriptDirectory(FOLDER)
    assert revisions() == {script.revision for script in scripts.walk_revisions()}
    assert newest() == scripts.get_current_head()


def test_current_database_opens_without_alembic(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    open_metadata_store(str(path)).close()
    assert _modules_of_migrations(path) == "[]"


def _modules_of_migrations(path: Path) -> str:
    """Which modules of Alembic a process has loaded when it has opened the metadata store."""
    command = [sys.executable, "-c", _OPEN, str(path)]
    opened = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return opened.stdout.strip()


def test_new_sqlite_database_has_the_schema_that_all_revisions_make(tmp_path: Path) -> None:
    """If this fails after a change of a revision, run `scripts/schema`."""
    migrated, created = (Database(str(tmp_path / name)) for name in ("migrated.db", "created.db"))
    try:
        migrate(migrated, newest())  # by its number, which goes through all revisions
        assert created.change_tables(lambda connection: newest_schema.create(connection, newest()))
        with migrated.read() as old, created.read() as new:
            assert newest_schema.script_of(old) == Path(newest_schema.PATH).read_text(encoding="utf-8")
            assert _everything(new) == _everything(old)
    finally:
        migrated.close()
        created.close()


def _everything(connection: Connection) -> dict[str, object]:
    """All columns, indexes and triggers, and how many rows each table has."""
    kinds = connection.execute(text("SELECT name, type, tbl_name FROM sqlite_master")).all()
    found: dict[str, object] = {name: (kind, table) for name, kind, table in kinds}
    for name, kind, _ in kinds:
        if kind == "table":
            columns = connection.execute(text(f"PRAGMA table_xinfo({name})")).all()
            rows = 0 if name == "run_text_terms" else connection.execute(text(f"SELECT 1 FROM {name}")).all()
            found[name] = (kind, columns, rows)
    return found


def test_new_sqlite_database_is_made_without_alembic(tmp_path: Path) -> None:
    assert _modules_of_migrations(tmp_path / "metadata.db") == "[]"


def test_older_database_is_migrated(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "metadata.db"))
    try:
        migrate(database, "0001")
        assert is_current(database, "0001")
        assert not is_current(database)
        migrate(database)
        assert is_current(database)
    finally:
        database.close()


def test_database_of_a_later_version_is_rejected(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")
    database = Database(path)
    try:
        migrate(database)
        database.write(
            lambda connection: connection.execute(text("UPDATE alembic_version SET version_num='9999'"))
        )
    finally:
        database.close()
    with pytest.raises(MetadataStoreError, match="revision 9999 of a later version"):
        open_metadata_store(path)
