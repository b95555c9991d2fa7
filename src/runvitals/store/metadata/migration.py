"""Database migrations. Revisions are in `migrations/versions/`, as `rNNNN_name.py`.

Alembic is imported only when there is something to migrate: it takes 10 MB of memory, which a server would
keep for as long as it runs.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from runvitals.store.errors import MetadataStoreError
from runvitals.store.metadata import newest_schema
from runvitals.store.metadata.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
_LOCK = 0x72756E76  # "runv": the key of our advisory lock in PostgreSQL
VERSIONS = os.path.join(FOLDER, "versions")
_DOWN_REVISION = re.compile(r'^down_revision = "(\d{4})"$', re.MULTILINE)
_REVISION = re.compile(r"r(\d{4})_\w+\.py")


def migrate(database: Database, revision: str = "head") -> None:
    """Migrate the database, an empty one too, to a revision, in a single transaction.

    A new SQLite database gets the newest schema at once.
    Servers that start together take turns; the later ones have nothing to do.

    Raises:
        MetadataStoreError: a later version of runvitals has migrated it.
    """

    def upgrade(connection: Connection) -> None:
        new = database.is_sqlite and revision == "head" and not inspect(connection).get_table_names()
        if new and newest_schema.create(connection, newest()):
            return
        from alembic import command

        command.upgrade(_config(database, connection), revision)

    if not is_current(database, revision):
        database.change_tables(upgrade)


def downgrade(database: Database, revision: str) -> None:
    """Migrate the database back to an earlier revision, in a single transaction.

    Raises:
        RuntimeError: something would be lost; the text says what. Nothing was changed.
        MetadataStoreError: a later version of runvitals has migrated it.
    """

    def work(connection: Connection) -> None:
        from alembic import command

        command.downgrade(_config(database, connection), revision)

    database.change_tables(work)


def _config(database: Database, connection: Connection) -> Config:
    from alembic.config import Config

    if not database.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    config = Config()
    config.set_main_option("script_location", FOLDER.replace("%", "%%"))
    config.attributes["connection"] = connection
    _check_known(database, connection)
    return config


def is_current(database: Database, revision: str = "head") -> bool:
    """Whether the database has this revision, so that there is nothing to migrate."""
    wanted = newest() if revision == "head" else revision
    with database.read() as connection:
        return _present(connection) == wanted


def is_empty(database: Database) -> bool:
    """Whether the database has no tables."""
    with database.read() as connection:
        return not inspect(connection).get_table_names()


def revisions() -> set[str]:
    """The revisions that this version of runvitals knows.

    Example:
        >>> "0001" in revisions()
        True
    """
    names = map(_REVISION.fullmatch, os.listdir(VERSIONS))
    return {name[1] for name in names if name is not None}


def newest() -> str:
    """The revision that no other one follows: numbers may be out of order."""
    earlier = set()
    for name in filter(_REVISION.fullmatch, os.listdir(VERSIONS)):
        with open(os.path.join(VERSIONS, name), encoding="utf-8") as file:
            found = _DOWN_REVISION.search(file.read())
        if found is not None:
            earlier.add(found[1])
    (last,) = revisions() - earlier
    return last


def _present(connection: Connection) -> str | None:
    """The database's revision; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def _check_known(database: Database, connection: Connection) -> None:
    present = _present(connection)
    if present is not None and present not in revisions():
        raise MetadataStoreError(
            f"the metadata store {database.name} has revision {present} of a later version of runvitals; use "
            "that version, or restore a backup"
        )
