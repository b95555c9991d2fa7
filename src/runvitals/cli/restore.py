"""`runvitals restore`: copies a backup to where no server has stored anything yet, or checks one."""

from __future__ import annotations

import argparse

from runvitals.base.terminal_text import inert
from runvitals.cli.backup import server_stores, writer
from runvitals.cli.store_options import add_store


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals restore`."""
    parser.description = (
        "Copies a backup into any pair of engines, in which nothing is stored yet, and compares "
        "what it writes with the checksums of the backup. No server may run with these stores."
    )
    parser.add_argument("backup", metavar="BACKUP", help="the folder or tar file of a backup")
    parser.add_argument(
        "--check", action="store_true", help="only read the backup, and say why it cannot be restored"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Restore or check a backup; return the exit code."""
    from runvitals.server.backup.manifest import check_backup
    from runvitals.server.backup.progress import Progress
    from runvitals.server.backup.restore import restore
    from runvitals.store.errors import MetadataStoreError

    progress = Progress(writer(arguments))
    if arguments.check:
        manifest, problems = check_backup(arguments.backup, progress)
        for problem in problems:
            print(inert(problem))
        state = f"{len(problems):,} problems" if problems else "no problems found"
        print(inert(f"{arguments.backup}: {manifest.summary()}: {state}"))
        for text in manifest.not_included:
            print(f"not included: {inert(text)}")
        return 1 if problems else 0
    stores = server_stores(arguments)
    try:
        manifest = restore(arguments.backup, stores, progress)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    print(inert(f"{arguments.backup}: {manifest.summary()}: restored to {stores.samples}"))
    for text in manifest.not_included:
        print(f"not included: {inert(text)}")
    return 0
