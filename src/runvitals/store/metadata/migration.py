"""Bringing a database to the form this version works with. Revisions are in `migrations/versions/`."""

from __future__ import annotations

import os

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from runvitals.store.metadata.database import Database, MetadataStoreError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
_LOCK = 0x72756E76  # "runv": of PostgreSQL's advisory locks, the one that is ours


def migrate(database: Database, revision: str = "head") -> None:
    """Bring the database to a revision, an empty one too, in one transaction: it is done whole or not at all.

    Servers that start together take turns; the later ones find it done.

    Raises:
        CatalogueError: a later version of runvitals has been at work there.
    """

    def upgrade(connection: Connection) -> None:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config = Config()
        config.set_main_option("script_location", FOLDER.replace("%", "%%"))
        config.attributes["connection"] = connection
        _refuse_later(database, connection, config)
        command.upgrade(config, revision)

    if not is_current(database, revision):
        database.write(upgrade)


def is_current(database: Database, revision: str = "head") -> bool:
    """Whether there is nothing to do: most times, and then without waiting for writers."""
    newest = ScriptDirectory(FOLDER).get_current_head() if revision == "head" else revision
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision() == newest


def _refuse_later(database: Database, connection: Connection, config: Config) -> None:
    present = MigrationContext.configure(connection).get_current_revision()
    known = {revision.revision for revision in ScriptDirectory.from_config(config).walk_revisions()}
    if present is not None and present not in known:
        raise MetadataStoreError(
            f"the catalogue {database.name} is of revision {present}, which a later version of runvitals "
            "made: use that version, or restore a backup"
        )
