"""`runvitals upgrade`: the tables of the metadata store, while no server uses it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.cli.store_options import add_store, metadata_address, store_folder

if TYPE_CHECKING:
    from runvitals.server.database.database import Database


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals upgrade`."""
    parser.description = (
        "Upgrades the tables of the metadata store to this version, as a server does when it "
        "starts. No server may use them."
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="change nothing: say which revisions would be applied, which servers have to end, and whether "
        "the backup is recent; exit code 1 if something is in the way. Servers may run",
    )
    parser.add_argument("--backup", metavar="PATH", help="with --check: the backup from before the upgrade")
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Upgrade the metadata store to this version, or check whether it can be; return the exit code."""
    from runvitals.server.database.migration import migrate, newest

    if arguments.check:
        return _check(arguments)
    with unused_database(arguments) as database:
        before = require_revision(database)
        migrate(database, wait_s=0.0)
        changed = "has" if before == newest() else f"was upgraded from revision {before} to"
        print(f"{inert(database.name)} {changed} revision {newest()}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    """Print what an upgrade would do; return 1 if something is in the way."""
    from runvitals.server.database.database import ReadOnlyDatabase
    from runvitals.server.database.migration import check_known, newest, pending
    from runvitals.server.database.server_link import count_servers
    from runvitals.store.errors import MetadataStoreError
    from runvitals.version import __version__

    try:
        with closing(ReadOnlyDatabase(metadata_address(arguments))) as database:
            revision = require_revision(database)
            check_known(revision, f"the metadata store {database.name}")
            revisions = pending(revision)
            state = f"has revision {revision}; runvitals {__version__} has {newest()}"
            print(inert(f"{database.name} {state}: {len(revisions) or 'no'} revisions to apply"))
            for later in revisions:
                print(f"  {later.number}: {later.title}")
            if all(later.servers_go_on for later in revisions):
                print("servers may be replaced one after the other")
            else:
                with database.read() as connection:
                    running = count_servers(connection)
                print(f"all servers have to end first; {running} use it now")
            if not revisions:
                return 0
            return _check_backup(arguments.backup, database)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None


def _check_backup(path: str | None, database: Database) -> int:
    from runvitals.server.backup.age import check_age

    if path is None:
        print("no backup was named: make one with `runvitals backup PATH`, and name it with --backup")
        return 1
    is_recent, text = check_age(path, database)
    print(inert(text))
    return 0 if is_recent else 1


@contextmanager
def unused_database(arguments: argparse.Namespace) -> Iterator[Database]:
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


def require_revision(database: Database) -> str:
    """Return the revision of the metadata store.

    Raises:
        OSError: the database is empty.
    """
    from runvitals.server.database.migration import present

    revision = present(database)
    if revision is None:
        raise OSError(f"{database.name} is not a metadata store: it is empty")
    return revision
