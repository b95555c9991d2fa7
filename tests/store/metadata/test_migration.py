"""Migrating the metadata store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from runvitals.store.errors import MetadataStoreError
from runvitals.store.metadata import open_metadata_store
from runvitals.store.metadata.database import Database
from runvitals.store.metadata.migration import FOLDER, is_current, migrate, newest, revisions
from tests.patience import PATIENCE_S

_OPEN = """
import sys
from runvitals.store.metadata import open_metadata_store
open_metadata_store(sys.argv[1]).close()
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("alembic", "mako")))
"""


def test_revisions_match_alembic() -> None:
    scripts = ScriptDirectory(FOLDER)
    assert revisions() == {script.revision for script in scripts.walk_revisions()}
    assert newest() == scripts.get_current_head()


def test_current_database_opens_without_alembic(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")
    open_metadata_store(path).close()
    opened = subprocess.run(
        [sys.executable, "-c", _OPEN, path], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert opened.stdout.strip() == "[]"


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
