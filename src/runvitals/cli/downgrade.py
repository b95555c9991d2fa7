"""`runvitals downgrade`: the tables of the metadata store as an earlier version knows them."""

from __future__ import annotations

import argparse

from runvitals.base.terminal_text import inert
from runvitals.cli.store_options import add_store
from runvitals.cli.upgrade import require_revision, unused_database


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals downgrade`."""
    parser.description = (
        "Returns the tables of the metadata store to an earlier revision, unless something "
        "would be lost that the earlier version has no place for. No server may use them."
    )
    parser.add_argument(
        "revision",
        metavar="REVISION",
        help="the one that the earlier version knows, which it names when it refuses to start",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="change nothing: say whether this is the way back, or what would be lost, so that a backup is",
    )
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return the metadata store to an earlier revision, if nothing is lost; return the exit code."""
    from runvitals.server.database.migration import downgrade

    with unused_database(arguments) as database:
        before, name = require_revision(database), inert(database.name)
        if not arguments.check:
            downgrade(database, arguments.revision)
            print(
                f"{name} was downgraded from revision {before} to {arguments.revision}: start the earlier "
                "version now, since this one would upgrade it again"
            )
            return 0
        try:
            downgrade(database, arguments.revision, only_try=True)
        except RuntimeError as error:
            print(inert(str(error)))
            print(
                "delete that, or restore the backup from before the upgrade with the earlier version: "
                "`runvitals restore BACKUP` into an empty folder or database"
            )
            return 1
        print(f"{name} can return from revision {before} to {arguments.revision}, and nothing is lost")
    return 0
