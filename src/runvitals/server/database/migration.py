"""Database migrations. Revisions are in `migrations/versions/`, as `rNNNN_name.py`.

A new database needs none of them: `newest_schema` makes its tables. Alembic is imported only when there is
something to migrate: it takes 10 MB of memory, which a server would keep for as long as it runs.
"""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, inspect, text

from runvitals.server.database import newest_schema
from runvitals.server.database.database import Database
from runvitals.server.database.server_link import count_servers
from runvitals.store.errors import MetadataStoreError

if TYPE_CHECKING:
    from alembic.config import Config

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
_LOCK = 0x72756E76  # "runv": the key of our advisory lock in PostgreSQL
_POLL_S = 0.5
_GO_ON = re.compile(r"^earlier_servers_go_on = True$", re.MULTILINE)
_DOWN_REVISION = re.compile(r'^down_revision = "(\d{4})"$', re.MULTILINE)
_REVISION = re.compile(r"r(\d{4})_\w+\.py")


def migrate(database: Database, wait_s: float = 30.0) -> None:
    """Migrate the database to the newest revision, in a single transaction. An empty one gets its schema.

    Servers that start together take turns; the later ones have nothing to do.

    Args:
        wait_s: how long to wait for servers of an earlier version to end.

    Raises:
        MetadataStoreError: its revision cannot be upgraded, or servers of an earlier version use it.
    """

    def upgrade(connection: Connection) -> None:
        _lock(database, connection)
        if _present_revision(connection) is None:
            newest_schema.create(connection, newest())
            return
        from alembic import command

        if not database.is_sqlite:  # other servers may go on, and wait for the same tables
            connection.execute(text("SET LOCAL lock_timeout = '30s'"))
        command.upgrade(_config(connection), "head")

    until_s = time.monotonic() + wait_s
    while (revision := present(database)) != newest():
        if revision is not None:
            check_known(revision, f"the metadata store {database.name}")
        try:
            if revision is None or not all(later.servers_go_on for later in pending(revision)):
                check_unused(database)
        except MetadataStoreError:
            if time.monotonic() >= until_s:
                raise
            time.sleep(_POLL_S)
        else:
            database.change_tables(upgrade)
            return


def create_at(connection: Connection, revision: str) -> None:
    """Make the tables of a revision, which may be an earlier one, in an empty database.

    Raises:
        MetadataStoreError: PostgreSQL's user may not create an extension that is needed.
    """
    newest_schema.create(connection, newest())
    if revision != newest():
        from alembic import command

        command.downgrade(_config(connection), revision)


def check_unused(database: Database) -> None:
    """Check that no server uses the database, whose tables are about to change. With SQLite nothing says so.

    Raises:
        MetadataStoreError: servers use it.
    """
    with database.read() as connection:
        count = count_servers(connection)
    if count:
        servers = "a server uses" if count == 1 else f"{count} servers use"
        raise MetadataStoreError(
            f"{servers} the metadata store {database.name}, which has the tables of another version: end all "
            "servers first"
        )


def downgrade(database: Database, revision: str, only_try: bool = False) -> None:
    """Migrate the database back to an earlier revision, in a single transaction.

    Args:
        only_try: take everything back at the end.

    Raises:
        RuntimeError: something would be lost; the text says what. Nothing was changed.
        MetadataStoreError: a server uses it.
        ValueError: there is no such earlier revision.
    """
    check_unused(database)
    now = present(database)
    earlier = _earlier(now)
    if revision not in earlier:
        raise ValueError(
            f"the metadata store {database.name} has revision {now}, and can return to "
            f"{', '.join(earlier) or 'no earlier one'}: not to {revision!r:.40}"
        )

    def work(connection: Connection) -> None:
        from alembic import command

        _lock(database, connection)
        command.downgrade(_config(connection), revision)
        if only_try:
            connection.rollback()

    database.change_tables(work)


def _lock(database: Database, connection: Connection) -> None:
    """Wait until no other server changes tables. SQLite's transactions do so themselves."""
    if not database.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", FOLDER.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def present(database: Database) -> str | None:
    """The database's revision; None for an empty database."""
    with database.read() as connection:
        return _present_revision(connection)


def is_current(database: Database) -> bool:
    """Return whether the database has the newest revision, so that there is nothing to migrate."""
    return present(database) == newest()


def is_empty(database: Database) -> bool:
    """Return whether the database has no tables."""
    with database.read() as connection:
        return not inspect(connection).get_table_names()


def newest() -> str:
    """The revision that no other one follows: numbers may be out of order."""
    before = _before()
    (last,) = before.keys() - before.values()
    return last


class PendingRevision(NamedTuple):
    """A revision that an upgrade would apply.

    Attributes:
        title: the first line of what it is about.
        servers_go_on: servers of the version before can use the changed tables.
    """

    number: str
    title: str
    servers_go_on: bool


def pending(revision: str) -> list[PendingRevision]:
    """Return the revisions that follow one, in order."""
    later: list[PendingRevision] = []
    for number in reversed([*_earlier(newest()), newest()]):
        if number == revision:
            break
        (path,) = glob.glob(os.path.join(glob.escape(FOLDER), "versions", f"r{number}_*.py"))
        with open(path, encoding="utf-8") as file:
            script = file.read()
        title = script.strip().partition("\n")[0].strip('"')
        later.append(PendingRevision(number, title, bool(_GO_ON.search(script))))
    return later[::-1]


def _before() -> dict[str, str | None]:
    """The known revisions, each with the one before it; None for the oldest."""
    before = {}
    folder = os.path.join(FOLDER, "versions")
    for name in filter(None, map(_REVISION.fullmatch, os.listdir(folder))):
        with open(os.path.join(folder, name[0]), encoding="utf-8") as file:
            earlier = _DOWN_REVISION.search(file.read())
        before[name[1]] = earlier and earlier[1]
    return before


def _earlier(revision: str | None) -> list[str]:
    """The revisions that there is a way back to from another one, the oldest first."""
    before = _before()
    earlier: list[str] = []
    while revision := before.get(revision or ""):
        earlier.append(revision)
    return earlier[::-1]


def _present_revision(connection: Connection) -> str | None:
    """The database's revision; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def check_known(revision: str, where: str) -> None:
    """Check that this version can use tables of a revision, after an upgrade.

    Args:
        where: what has the tables.

    Raises:
        MetadataStoreError: it cannot.
    """
    before = _before()
    if revision in before:
        return
    oldest = next(revision for revision, earlier in before.items() if earlier is None)
    if revision < oldest:
        raise MetadataStoreError(
            f"{where} has revision {revision}; this version of runvitals can "
            f"upgrade it from {oldest} on: run `runvitals upgrade` with a version that knows both "
            f"{revision} and {oldest}, or start with an empty folder or database"
        )
    raise MetadataStoreError(
        f"{where} has revision {revision} of a later version of runvitals; "
        f"this one knows it up to {newest()}: use that version, run "
        f"`runvitals downgrade {newest()}` with it, or restore a backup"
    )


def check_nothing_is_lost(connection: Connection, revision: str, losses: Iterable[tuple[str, str]]) -> None:
    """Check that a downgrade of a revision loses nothing.

    Args:
        losses: queries, each with a text that says what its first value means and what to do about it. A
            query without rows has found nothing.

    Raises:
        RuntimeError: a query found something.
    """
    for query, what in losses:
        value = connection.execute(text(query)).scalar()
        if value is not None:
            raise RuntimeError(f"cannot return to the revision before {revision}: {what.format(value)}")


def rows_of(table: str, where: str = "") -> str:
    """A query for `check_nothing_is_lost` that counts rows."""
    condition = f" WHERE {where}" if where else ""
    return f"SELECT count(*) FROM {table}{condition} HAVING count(*) > 0"
