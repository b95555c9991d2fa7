"""Upgrades and downgrades of the metadata store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text

from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run_sort import RunSort
from runvitals.server.database import migration
from runvitals.server.database.database import Database
from runvitals.server.database.migration import FOLDER, downgrade, migrate, newest, present
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing.recovery import fill_from_damaged
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.errors import MetadataStoreError
from tests.patience import PATIENCE_S
from tests.server.database.conftest import NewAddress
from tests.server.database.next_revision import NEXT, later_version
from tests.server.database.schemas import schema

pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
T0 = 1_800_000_000_000
_OPEN = """
import sys
from runvitals.server.metadata_store import open_metadata_store
open_metadata_store(sys.argv[1]).close()
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("alembic", "mako")))
"""


@pytest.fixture
def opened() -> Iterator[Callable[[str], Database]]:
    """Opens databases, which are closed afterwards."""
    databases = []

    def open_database(address: str) -> Database:
        databases.append(Database(address))
        return databases[-1]

    yield open_database
    for database in databases:
        database.close()


@pytest.fixture
def oldest(kind: str, empty: NewAddress) -> str:
    """A database of revision 0041 with a few rows, from the version that had all revisions before it."""
    address = empty()
    script = Path(__file__).with_name(f"revision_0041.{kind}.sql").read_text(encoding="utf-8")
    if kind == "sqlite":
        with closing(sqlite3.connect(address)) as file:
            file.executescript(script)
    else:
        with psycopg.connect(address) as connection:
            connection.execute(script.encode())
    return address


def run(database: Database, statement: str) -> None:
    database.write(lambda connection: connection.execute(text(statement)))


def test_revisions_match_alembic() -> None:
    scripts = ScriptDirectory(FOLDER)
    assert newest() == scripts.get_current_head()
    assert scripts.get_base() == "0041"


@pytest.mark.parametrize("state", ["new", "current"])
def test_a_database_opens_without_alembic(tmp_path: Path, state: str) -> None:
    path = tmp_path / "metadata.db"
    if state == "current":
        open_metadata_store(str(path)).close()
    command = [sys.executable, "-c", _OPEN, str(path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert process.stdout.strip() == "[]"


def test_the_oldest_database_becomes_one_like_a_new_one(
    oldest: str, empty: NewAddress, opened: Callable[[str], Database]
) -> None:
    new = empty()
    for address in (oldest, new):
        open_metadata_store(address).close()
    assert present(opened(oldest)) == present(opened(new)) == newest()
    assert schema(opened(oldest)) == schema(opened(new))


def test_the_oldest_database_keeps_everything(oldest: str) -> None:
    with open_metadata_store(oldest) as store:
        page = store.runs.page(Filter(terms=parse("brave")), RunSort("started_ms"), T0)
        assert [(run.uid, run.name) for run in page.runs] == [("otter-1", "brave otter")]
        assert store.sections.read([2])[2].shared["config"] == {"lr": 0.1}
        assert [user.name for user in store.accounts.users.page()] == ["ada"]
        assert [project.name for project in store.projects.all(T0)] == ["letters", "digits"]
        [new] = store.writers.join([WriterRegistration("new", "monitor.a.1", "digits")], T0)
        assert new.run_id == 4  # 1 was that of a run that is deleted


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # only files are recovered
def test_the_oldest_database_is_recovered(oldest: str, tmp_path: Path) -> None:
    with open_metadata_store(str(tmp_path / "recovered.db")) as store:
        fill_from_damaged(store, oldest)
        assert store.runs.count(Filter(terms=parse("brave")), T0) == 1


def test_there_and_back(
    oldest: str, tmp_path: Path, opened: Callable[[str], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, before = opened(oldest), newest()
    migrate(database)
    schema_before = schema(database)
    monkeypatch.setattr(migration, "FOLDER", later_version(tmp_path / "later"))
    migrate(database)
    assert present(database) == NEXT
    run(database, "UPDATE user_account SET colour = 'red'")
    downgrade(database, before)
    assert present(database) == before
    assert schema(database) == schema_before
    with database.read() as connection:  # nothing was deleted with the rows of the table that was rebuilt
        assert connection.execute(text("SELECT team_id, user_id FROM membership")).all() == [(2, 1)]
        if database.is_sqlite:
            assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []


def test_what_would_be_lost_prevents_a_downgrade(
    oldest: str, tmp_path: Path, opened: Callable[[str], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, before = opened(oldest), newest()
    monkeypatch.setattr(migration, "FOLDER", later_version(tmp_path / "later"))
    migrate(database)
    run(database, "INSERT INTO badge (user_id) VALUES (1)")
    lost = f"cannot return to the revision before {NEXT}: 1 badges: delete them"
    with pytest.raises(RuntimeError, match=lost):
        downgrade(database, before)
    assert present(database) == NEXT


@pytest.mark.parametrize(
    ("revision", "what_to_do"),
    [
        ("0001", "can upgrade it from 0041 on: run `runvitals upgrade` with a version that knows both"),
        ("0040", "can upgrade it from 0041 on: run `runvitals upgrade` with a version that knows both"),
        ("9999", f"knows it up to {newest()}: use that version, run `runvitals downgrade {newest()}`"),
    ],
)
def test_other_revisions_are_rejected(oldest: str, revision: str, what_to_do: str) -> None:
    with closing(Database(oldest)) as database:
        run(database, f"UPDATE alembic_version SET version_num = '{revision}'")
    with pytest.raises(MetadataStoreError, match=f"has revision {revision}.*{what_to_do}"):
        open_metadata_store(oldest)
