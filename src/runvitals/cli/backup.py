"""`runvitals backup`: copies a whole server into a folder or a tar file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.cli.store_options import (
    add_store,
    contents_folder,
    is_clickhouse,
    metadata_address,
    store_folder,
)

if TYPE_CHECKING:
    from runvitals.server.backup.backup import ServerStores


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals backup`."""
    parser.description = (
        "Copies samples, metadata and files of runs, while servers use them. The copy has the "
        "same form for every pair of engines, a manifest, and checksums: `runvitals restore --check` reads "
        "it again."
    )
    parser.add_argument("into", metavar="PATH", help="an empty or new folder, or a new file NAME.tar")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Back up a server; return the exit code."""
    from runvitals.server.backup.backup import back_up
    from runvitals.server.backup.progress import Progress
    from runvitals.store.errors import MetadataStoreError

    try:
        manifest = back_up(server_stores(arguments), arguments.into, Progress(writer(arguments)))
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    print(inert(f"{arguments.into}: {manifest.summary()}"))
    for text in manifest.not_included:
        print(f"not included: {inert(text)}")
    for sha256 in manifest.damaged:
        print(f"damaged in the store already: the content {inert(sha256)}")
    return 0


def server_stores(arguments: argparse.Namespace) -> ServerStores:
    """Return where the options say that a server keeps everything."""
    from runvitals.server.backup.backup import ServerStores

    folder = store_folder(arguments)
    clickhouse = arguments.store if is_clickhouse(arguments) else None
    return ServerStores(folder, clickhouse, metadata_address(arguments), contents_folder(folder))


def writer(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Return what writes lines of progress, nothing with `--quiet`."""
    return (lambda text: None) if arguments.quiet else write_progress


def write_progress(text: str) -> None:
    """Write a line to stderr."""
    print(f"runvitals: {inert(text)}", file=sys.stderr, flush=True)
