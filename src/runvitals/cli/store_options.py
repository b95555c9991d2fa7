"""The options for the stores of samples and metadata: `--store` and `--metadata`."""

from __future__ import annotations

import argparse
import glob
import os
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from runvitals.base.private_folders import make_private
from runvitals.base.terminal_text import inert
from runvitals.cli.data_folder import add_dir, directory

if TYPE_CHECKING:
    from runvitals.server.metadata_store import MetadataStore
    from runvitals.store.samples.clickhouse import ClickHouseStore
    from runvitals.store.samples.cold.storage import ColdSettings
    from runvitals.store.samples.sqlite import SqliteChunks

METADATA_FILE = "catalogue.db"
SECRETS_FILE = "secrets.key"
FILES_FOLDER = "files"
"""The folder in the store with media and saved files of runs, by their SHA-256."""
_WORKER = "worker-"
_CLICKHOUSE = ("clickhouse://", "clickhouses://")


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options for the sample store and the metadata store."""
    parser.add_argument(
        "--store",
        metavar="FOLDER",
        help="where samples are kept: a folder, or clickhouse://USER@HOST:8123/DATABASE (clickhouses:// with "
        "TLS; ?cluster=NAME at the end for replicated tables), with the password in CLICKHOUSE_PASSWORD or "
        "the file CLICKHOUSE_PASSWORD_FILE; default: `store` in the data folder",
    )
    add_metadata(parser)
    add_dir(parser)


def add_metadata(parser: argparse.ArgumentParser) -> None:
    """Add the option for the metadata store."""
    parser.add_argument(
        "--metadata",
        "--catalogue",
        dest="catalogue",
        metavar="URL",
        help="the metadata store: postgresql://…, with the password in PGPASSWORD or ~/.pgpass; "
        "default: a file in the store",
    )


def is_clickhouse_address(address: str) -> bool:
    """Return whether this is the address of a database of ClickHouse, not a folder."""
    return address.startswith(_CLICKHOUSE)


def is_clickhouse(arguments: argparse.Namespace) -> bool:
    """Return whether samples are kept in ClickHouse. Loads nothing of the store."""
    return is_clickhouse_address(arguments.store or "")


def store_folder(arguments: argparse.Namespace) -> str:
    """Return the folder of the store, which may not exist; with ClickHouse, of what else a server keeps."""
    in_folder = None if is_clickhouse(arguments) else arguments.store
    return in_folder or os.path.join(directory(arguments), "store")


def contents_folder(folder: str) -> str:
    """Return the folder in a store with the contents of files that are in no bucket."""
    from runvitals.store.files.folder_store import CONTENTS

    return os.path.join(folder, FILES_FOLDER, CONTENTS)


def metadata_address(arguments: argparse.Namespace) -> str:
    """Return the address of the metadata store, or the path of its file, which may not exist."""
    return arguments.catalogue or os.path.join(store_folder(arguments), METADATA_FILE)


def store_locations(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the folder of the store, created if missing, and the address of the metadata store.

    If samples are kept in ClickHouse, the folder is for what else a server keeps.
    """
    folder = os.path.abspath(store_folder(arguments))
    try:
        make_private(folder)
    except OSError as error:
        raise OSError(f"could not create the store's folder {folder}: {error.strerror}") from None
    return folder, arguments.catalogue or os.path.join(folder, METADATA_FILE)


def existing_metadata_address(arguments: argparse.Namespace) -> str:
    """Return the address of an existing metadata store.

    The action `create` also creates the store, for a server that was not started yet.

    Raises:
        FileNotFoundError: there is none.
    """
    from runvitals.server.database.database import sqlite_path

    address = metadata_address(arguments)
    path = sqlite_path(address)
    if path is None or os.path.exists(path):
        return address
    path = os.path.abspath(path)
    if arguments.action != "create":
        raise FileNotFoundError(
            f"{path} does not exist: expected --store with the folder of a server's store, or --metadata"
        )
    print(inert(f"runvitals: creating a new store: {path}"), file=sys.stderr)
    return store_locations(arguments)[1]


def check_shared_stores(arguments: argparse.Namespace) -> None:
    """Check that several processes can share both stores.

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


def open_sample_store(
    arguments: argparse.Namespace, cold: ColdSettings | None = None
) -> SqliteChunks | ClickHouseStore:
    """Return the sample store. The caller closes it.

    Args:
        cold: settings for old samples of a store in a folder; None: those of earlier moves.

    Raises:
        ValueError: invalid address.
        StoreError: it cannot be opened.
    """
    if is_clickhouse(arguments):
        return _open_clickhouse(arguments)
    from runvitals.store.samples.sqlite import SqliteChunks

    folder, _ = store_locations(arguments)
    return SqliteChunks(folder, cold=cold)


def _open_clickhouse(
    arguments: argparse.Namespace, worker: int = 0, may_be_away: bool = False
) -> ClickHouseStore:
    """Return the store in ClickHouse.

    Args:
        worker: the number of this process; each has a folder of its own for what waits.
        may_be_away: open it also if ClickHouse cannot be reached.
    """
    from runvitals.store.samples.clickhouse import ClickHouseStore, parse_address

    folder, _ = store_locations(arguments)
    address = parse_address(arguments.store)
    return ClickHouseStore(address, _worker_folder(folder, worker), may_be_away=may_be_away)


def open_stores(
    stack: ExitStack, arguments: argparse.Namespace, worker: int = 0, cold: ColdSettings | None = None
) -> tuple[SqliteChunks | ClickHouseStore, MetadataStore]:
    """Open both stores until the stack closes; without ClickHouse, they are paired later.

    Args:
        worker: the number of this process.
        cold: see `open_sample_store`.

    Raises:
        ValueError: invalid address.
        OSError: one of them cannot be opened, or they do not belong together.
    """
    from runvitals.server.pairing import pairing

    _, address = store_locations(arguments)
    if is_clickhouse(arguments):
        clickhouse = _open_clickhouse(arguments, worker, may_be_away=True)
        stack.callback(clickhouse.close)
        return clickhouse, _pair_clickhouse(stack, clickhouse, address)
    store = open_sample_store(arguments, cold)
    stack.callback(store.close)
    pairing.check_metadata_store_exists(store, address)
    metadata_store = _open_metadata_store(stack, address)
    _pair(store, metadata_store)
    return store, metadata_store


def _pair_clickhouse(stack: ExitStack, store: ClickHouseStore, address: str) -> MetadataStore:
    """Open the metadata store, and pair it, now or once ClickHouse can do it."""
    from runvitals.server.pairing import pairing
    from runvitals.store.samples.interface import StoreUnavailable

    try:
        store.check_prepared()
        pairing.check_metadata_store_exists(store, address)
    except StoreUnavailable:
        pairing.check_metadata_store_is_not_new(store, address)
    metadata_store = _open_metadata_store(stack, address)
    try:
        store.check_prepared()
        _pair(store, metadata_store)
    except StoreUnavailable:
        pairing_before = metadata_store.issued_ids.pairing()
        store.pair_later(pairing_before and pairing_before[0], partial(pairing.pair, store, metadata_store))
    return metadata_store


def _pair(store: SqliteChunks | ClickHouseStore, metadata_store: MetadataStore) -> None:
    """Pair the stores.

    Raises:
        OSError: they do not belong together, or one of them cannot be used.
    """
    from runvitals.server.pairing import pairing
    from runvitals.store.errors import MetadataStoreError

    try:
        pairing.pair(store, metadata_store)
    except MetadataStoreError as error:
        name = metadata_store.issued_ids.name
        raise OSError(f"could not use the metadata store {name}: {error}") from error


def _open_metadata_store(stack: ExitStack, address: str) -> MetadataStore:
    from runvitals.server.metadata_store import open_metadata_store
    from runvitals.store.errors import MetadataStoreError

    try:
        return stack.enter_context(open_metadata_store(address))
    except MetadataStoreError as error:
        raise OSError(str(error)) from error
