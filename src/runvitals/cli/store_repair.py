"""`runvitals store check` and `repair`, for samples in a folder or in ClickHouse."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.cli.cold_storage import cold_address
from runvitals.cli.store_options import (
    SECRETS_FILE,
    add_metadata,
    contents_folder,
    is_clickhouse,
    metadata_address,
    store_folder,
)

if TYPE_CHECKING:
    from runvitals.server.database.secret_box import SecretBox
    from runvitals.store.samples.sqlite.check import Problem
    from runvitals.store.samples.sqlite.log import Pairing
    from runvitals.store.samples.sqlite.stored_ids import StoredIds


def add(check: argparse.ArgumentParser, repair: argparse.ArgumentParser) -> None:
    """Add the options of the two commands."""
    for action in (check, repair):
        add_metadata(action)
    check.add_argument(
        "--read-cold",
        action="store_true",
        help="read and decode what is in --cold-storage, too, of which otherwise only the sizes are compared",
    )
    check.add_argument(
        "--secret-keys",
        metavar="FILE",
        help=f"the server's --secret-keys, for the buckets of teams; default: {SECRETS_FILE} in the store",
    )
    repair.add_argument(
        "--cold-storage",
        metavar="BUCKET",
        type=cold_address,
        help="the server's --cold-storage, if log.db was lost; default: as it says",
    )


def check(arguments: argparse.Namespace) -> int:
    """Print all problems; return 1 if there are any."""
    from runvitals.server.pairing.check import check_contents, check_ids, check_team_buckets
    from runvitals.store.samples.sqlite import stored_ids
    from runvitals.store.samples.sqlite.check import check as check_samples

    name, count = store_folder(arguments), 0
    if is_clickhouse(arguments):
        name, stored = ids_in_clickhouse(arguments.store)
    else:
        count = _print(check_samples(name, arguments.read_cold))
        # Before the metadata: what is added meanwhile is in the metadata store by the time it is read.
        stored = stored_ids.read(name)
    elsewhere = _elsewhere(arguments, stored.pairing)
    if elsewhere is not None:
        print(f"the metadata store is at {inert(elsewhere)}: use --metadata to check it too")
    else:
        address = metadata_address(arguments)
        count += _print(check_ids(name, stored, address))
        count += _print(check_contents(contents_folder(store_folder(arguments)), address))
        count += _print(check_team_buckets(address, _secret_box(arguments)))
    if count:
        print("1 problem" if count == 1 else f"{count} problems")
        return 1
    print(f"{inert(name)}: no problems found{_not_read(arguments)}")
    return 0


def _secret_box(arguments: argparse.Namespace) -> SecretBox:
    """Return what opens the credentials of buckets; without the key file, one that opens none."""
    from runvitals.server.database.secret_box import open_secret_box, temporary_secret_box

    path = arguments.secret_keys or os.path.join(store_folder(arguments), SECRETS_FILE)
    return open_secret_box(path) if os.path.exists(path) else temporary_secret_box()


def _not_read(arguments: argparse.Namespace) -> str:
    """Return a note about cold samples that a check has not read; "" if there are none."""
    from runvitals.store.samples.sqlite.inventory import inventory

    if is_clickhouse(arguments) or arguments.read_cold:
        return ""
    cold_bytes = sum(file.cold_bytes for file in inventory(store_folder(arguments)))
    return f"; {cold_bytes / 1e6:.1f} MB in cold storage were not read: use --read-cold" if cold_bytes else ""


def repair(arguments: argparse.Namespace) -> int:
    """Recover what can be read, and let samples and metadata match."""
    from runvitals.server.pairing import repair
    from runvitals.store.errors import MetadataStoreError
    from runvitals.store.samples.clickhouse import parse_address
    from runvitals.store.samples.cold.storage import ColdSettings

    folder, address = store_folder(arguments), metadata_address(arguments)
    elsewhere = _elsewhere(arguments, _pairing(arguments))
    if elsewhere is not None:
        raise ValueError(f"the metadata store is at {elsewhere}: name it, or a new one, with --metadata")
    cold = arguments.cold_storage
    try:
        if is_clickhouse(arguments):
            if cold is not None:
                raise ValueError("--cold-storage is for samples in a folder, not in ClickHouse")
            repair.repair_clickhouse(parse_address(arguments.store), folder, address, _report)
        elif not os.path.isdir(folder):
            raise OSError(f"there is no store in {folder}")
        else:
            repair.repair(folder, address, _report, ColdSettings(cold) if cold is not None else None)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    return 0


def ids_in_clickhouse(address: str) -> tuple[str, StoredIds]:
    """Return the name of the store in ClickHouse, and the ids in it."""
    from runvitals.store.samples.clickhouse import parse_address, stored_ids
    from runvitals.store.samples.clickhouse.connection import ClickHouse

    clickhouse = ClickHouse(parse_address(address))
    try:
        return str(clickhouse.address), stored_ids.read(clickhouse)
    finally:
        clickhouse.close()


def _pairing(arguments: argparse.Namespace) -> Pairing | None:
    """Return the pairing of the sample store; None without one, or if it is unreadable before the repair."""
    from runvitals.store.samples.sqlite import log, stored_ids
    from runvitals.store.samples.sqlite.database import DamagedFile

    if is_clickhouse(arguments):
        return ids_in_clickhouse(arguments.store)[1].pairing
    folder = store_folder(arguments)
    if not os.path.exists(os.path.join(folder, log.NAME)):
        return None
    try:
        return stored_ids.pairing_of(folder)
    except DamagedFile:
        return None


def _elsewhere(arguments: argparse.Namespace, pairing: Pairing | None) -> str | None:
    """Return the address of a metadata store in PostgreSQL that no option names; None otherwise."""
    if arguments.catalogue is not None or pairing is None:
        return None
    return pairing.metadata_store if pairing.metadata_store.startswith("postgresql") else None


def _print(problems: Iterable[Problem]) -> int:
    """Print problems; return their number."""
    count = 0
    for problem in problems:
        print(inert(problem))
        count += 1
    return count


def _report(text: str) -> None:
    print(inert(text))
