"""Where a server keeps samples and metadata: the options `--store` and `--metadata`."""

from __future__ import annotations

import argparse
import glob
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from runvitals.cli.data_folder import add_dir, directory

if TYPE_CHECKING:
    from runvitals.store.metadata import MetadataStore
    from runvitals.store.samples.clickhouse import ClickHouseStore
    from runvitals.store.samples.sqlite_chunks import SqliteChunks

METADATA_FILE = "catalogue.db"
_WORKER = "worker-"
_CLICKHOUSE = ("clickhouse://", "clickhouses://")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Options for the sample store and the metadata store."""
    parser.add_argument(
        "--store",
        metavar="FOLDER",
        help="where samples are kept: a folder, or clickhouse://USER@HOST:8123/DATABASE (clickhouses:// with "
        "TLS), with the password in CLICKHOUSE_PASSWORD or the file CLICKHOUSE_PASSWORD_FILE; default: "
        "`store` in the data folder",
    )
    parser.add_argument(
        "--metadata",
        "--catalogue",
        dest="catalogue",
        metavar="URL",
        help="the metadata store: postgresql://…, with the password in PGPASSWORD or ~/.pgpass; "
        "default: a file in the store",
    )
    add_dir(parser)


def is_clickhouse_address(address: str) -> bool:
    """Whether this is the address of a database of ClickHouse, not a folder."""
    return address.startswith(_CLICKHOUSE)


def is_clickhouse(arguments: argparse.Namespace) -> bool:
    """Whether samples are kept in ClickHouse. Loads nothing of the store."""
    return is_clickhouse_address(arguments.store or "")


def store_locations(arguments: argparse.Namespace) -> tuple[str, str]:
    """The folder of the store, created if missing, and the address of the metadata store.

    If samples are kept in ClickHouse, the folder is for what else a server keeps.
    """
    in_folder = None if is_clickhouse(arguments) else arguments.store
    folder = os.path.abspath(in_folder or os.path.join(directory(arguments), "store"))
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise OSError(f"could not create the store's folder {folder}: {error.strerror}") from None
    return folder, arguments.catalogue or os.path.join(folder, METADATA_FILE)


def check_shared_stores(arguments: argparse.Namespace) -> None:
    """
    Raises:
        ValueError: one of the stores is for a single process.
    """
    if not is_clickhouse(arguments) or not (arguments.catalogue or "").startswith("postgres"):
        raise ValueError(
            "--workers needs stores that processes can share: --store clickhouse://… and "
            "--metadata postgresql://…"
        )


def check_waiting(arguments: argparse.Namespace) -> None:
    """Check that no batch waits for a process that is not started any more.

    Raises:
        ValueError: the text says how many processes to start.
    """
    if not is_clickhouse(arguments):
        return
    folder, _ = store_locations(arguments)
    for path in glob.glob(os.path.join(glob.escape(folder), f"{_WORKER}*", "waiting.db")):
        number = os.path.basename(os.path.dirname(path)).removeprefix(_WORKER)
        if number.isdecimal() and int(number) >= arguments.workers:
            from runvitals.store.samples.clickhouse.waiting_batches import count_waiting

            if count_waiting(path):
                raise ValueError(
                    f"{path} has batches that wait for ClickHouse: start with --workers {int(number) + 1}"
                )


def _worker_folder(folder: str, worker: int) -> str:
    return os.path.join(folder, f"{_WORKER}{worker}") if worker else folder


def open_sample_store(arguments: argparse.Namespace, worker: int = 0) -> SqliteChunks | ClickHouseStore:
    """The sample store. The caller closes it.

    Args:
        worker: the number of this process; each has a folder of its own for what waits.

    Raises:
        ValueError: invalid address.
        StoreError: it cannot be opened.
    """
    folder, _ = store_locations(arguments)
    if not is_clickhouse(arguments):
        from runvitals.store.samples.sqlite_chunks import SqliteChunks

        return SqliteChunks(folder)
    from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address

    return ClickHouseStore(parse_address(arguments.store), _worker_folder(folder, worker))


def open_stores(
    stack: ExitStack, arguments: argparse.Namespace, worker: int = 0
) -> tuple[SqliteChunks | ClickHouseStore, MetadataStore]:
    """Both stores, until the stack closes.

    Raises:
        ValueError: invalid address.
        OSError: one of them cannot be opened, or they do not belong together.
    """
    from runvitals.store import pairing
    from runvitals.store.errors import MetadataStoreError
    from runvitals.store.metadata import open_metadata_store

    _, address = store_locations(arguments)
    store = open_sample_store(arguments, worker)
    stack.callback(store.close)
    pairing.check_metadata_store_exists(store, address)
    try:
        metadata_store = stack.enter_context(open_metadata_store(address))
    except MetadataStoreError as error:
        raise OSError(str(error)) from error
    pairing.pair(store, metadata_store)
    return store, metadata_store
