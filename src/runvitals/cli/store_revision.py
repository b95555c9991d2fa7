"""`runvitals store upgrade` and `downgrade`: the tables of the metadata store, while no server uses it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from runvitals.base.terminal_text import inert
from runvitals.cli.store_options import add_metadata, metadata_address, store_folder

if TYPE_CHECKING:
    from runvitals.server.database.database import Database


def add(actions: Any) -> None:
    """Add the two commands."""
    upgrade = actions.add_parser(
        "upgrade", help="upgrade the metadata store, as a server does when it starts"
    )
    downgrade = actions.add_parser(
        "downgrade", help="return the metadata store to the tables of an earlier version"
    )
    downgrade.add_argument(
        "revision",
        metavar="REVISION",
        help="the one that the earlier version knows, which it names when it refuses to start",
    )
    for action in (upgrade, downgrade):
        add_metadata(action)


def upgrade(arguments: argparse.Namespace) -> int:
    """Upgrade the metadata store to this version of runvitals."""
    from runvitals.server.database.migration import migrate, newest

    with _database(arguments) as database:
        before = _require_revision(database)
        migrate(database, wait_s=0.0)
        changed = "has" if before == newest() else f"was upgraded from revision {before} to"
        print(f"{inert(database.name)} {changed} revision {newest()}")
    return 0


def downgrade(arguments: argparse.Namespace) -> int:
    """Return the metadata store to an earlier revision, if nothing is lost."""
    from runvitals.server.database.migration import downgrade

    with _database(arguments) as database:
        before = _require_revision(database)
        downgrade(database, arguments.revision)
        print(
            f"{inert(database.name)} was downgraded from revision {before} to {arguments.revision}: start "
            "the earlier version now, since this one would upgrade it again"
        )
    return 0


@contextmanager
def _database(arguments: argparse.Namespace) -> Iterator[Database]:
    """Open the database of the metadata store, which no server may use.

    Raises:
        OSError: there is none, a server uses it, or it could not be changed.
    """
    from runvitals.server.database.database import Database, sqlite_path
    from runvitals.store.errors import MetadataStoreError
    from runvitals.store.samples.sqlite.folder_lock import FolderLock

    address, folder = metadata_address(arguments), store_folder(arguments)
    path = sqlite_path(address)
    with ExitStack() as stack:
        if path is not None and not os.path.exists(path):
            raise OSError(f"there is no metadata store in {path}")
        if path is not None and os.path.isdir(folder):
            stack.enter_context(closing(FolderLock(folder)))
        try:
            yield stack.enter_context(closing(Database(address)))
        except (MetadataStoreError, RuntimeError) as error:
            raise OSError(str(error)) from None


def _require_revision(database: Database) -> str:
    """Return the revision of the metadata store.

    Raises:
        OSError: the database is empty.
    """
    from runvitals.server.database.migration import present

    revision = present(database)
    if revision is None:
        raise OSError(f"{database.name} is not a metadata store: it is empty")
    return revision
