"""What a server would find in a metadata store, before it starts. Changes nothing."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import Final, NamedTuple

from sqlalchemy import Connection, text

from runvitals.server.database.database import ReadOnlyDatabase, sqlite_path
from runvitals.server.database.migration import check_known, present
from runvitals.store.errors import MetadataStoreError, MetadataStoreUnavailable

_POSTGRESQL: Final = text(
    "SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS recovers, "
    "has_schema_privilege(current_schema(), 'CREATE') AS creates, "
    "EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm') AS trigrams, "
    "EXTRACT(epoch FROM clock_timestamp()) AS now_s"
)


class DatabaseCondition(NamedTuple):
    """What there is.

    Attributes:
        name: of the database, without a password.
        version: the database and its version.
        revision: of its tables; None: it has none yet.
        ahead_s: by how many seconds its clock is ahead of this machine's; None: it has no clock of its own.
    """

    name: str
    version: str
    revision: str | None
    ahead_s: float | None


def read_condition(address: str) -> DatabaseCondition:
    """Read what there is.

    Raises:
        ValueError: unsupported address.
        MetadataStoreError: no server could use it; the text says why.
    """
    path = sqlite_path(address)
    if path is not None and not os.path.exists(path):
        return DatabaseCondition(path, "SQLite", None, None)
    with closing(ReadOnlyDatabase(address)) as database:
        try:
            revision = present(database)
        except MetadataStoreUnavailable as error:
            raise MetadataStoreError(f"{database.name} cannot be reached: {error}") from None
        if revision is not None:
            check_known(revision, f"the metadata store {database.name}")
        if database.is_sqlite:
            return DatabaseCondition(database.name, "SQLite", revision, None)
        with database.read() as connection:
            version, ahead_s = _read_postgresql(connection, database.name, is_new=revision is None)
        return DatabaseCondition(database.name, f"PostgreSQL {version}", revision, ahead_s)


def _read_postgresql(connection: Connection, name: str, is_new: bool) -> tuple[str, float]:
    before_s = time.time()
    row = connection.execute(_POSTGRESQL).one()
    now_s = (before_s + time.time()) / 2
    if row.recovers:
        raise MetadataStoreError(f"{name} is a replica, to which nobody can write: name the primary server")
    if not row.creates:
        raise MetadataStoreError(
            f"this user may not create tables in {name}: GRANT CREATE ON SCHEMA public TO the user, or make "
            "the user the owner of the database"
        )
    if is_new and not row.trigrams:
        raise MetadataStoreError(
            f"{name} has no extension pg_trgm: install it (Debian: in the package postgresql)"
        )
    return row.version, float(row.now_s) - now_s
