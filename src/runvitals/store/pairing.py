"""Pairs a sample store with its metadata store, and detects mismatches.

The sample store contains ids that the metadata store assigned. With another metadata store, or an older copy,
samples of one run would be shown under the name of another. When they are first used together, both get the
same random id; both count server starts. A server starts only if they match.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Protocol

from runvitals.store.metadata import MetadataStore
from runvitals.store.metadata.database import sqlite_path
from runvitals.store.metadata.issued_ids import HighestIds
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite_chunks.log import NAME as LOG_FILE
from runvitals.store.samples.sqlite_chunks.log import Pairing

REMEDY = (
    "specify the right one with --catalogue, restore it from a backup, or pair the two with "
    "`runvitals store repair`"
)


class PairedStore(Protocol):
    """A sample store that knows its metadata store."""

    @property
    def name(self) -> str:
        """Its folder or database, without a password."""

    @property
    def pairing(self) -> Pairing | None:
        """The pairing; None if there is none yet."""

    @property
    def store_id(self) -> str | None:
        """The id that both share, also if the pairing was lost."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever stored."""

    def highest(self) -> tuple[int, int]:
        """The highest id of a run or writer, and of a metric, that was stored."""

    def pair(self, pairing: Pairing) -> None:
        """Record the pairing. Durable."""


@dataclass(frozen=True, slots=True)
class PairingState:
    """What a sample store or a metadata store contains about its pairing.

    Args:
        name: of the folder or the database.
        pairing: id and number of starts; None if it was never paired.
        is_new: nothing was ever stored, or no writer was ever registered.
        highest: the highest ids that it contains or has assigned.
    """

    name: str
    pairing: tuple[str, int] | None
    is_new: bool
    highest: HighestIds


def mismatch(store: PairingState, metadata_store: PairingState) -> str | None:
    """Why a sample store and a metadata store do not match; None if they do."""
    if store.pairing is not None and metadata_store.pairing is not None:
        if store.pairing[0] != metadata_store.pairing[0]:
            return f"the metadata store {metadata_store.name} belongs to a different store than {store.name}"
        if metadata_store.pairing[1] < store.pairing[1]:
            return f"the metadata store {metadata_store.name} is older than the store in {store.name}"
    elif store.pairing is not None:
        return (
            f"the metadata store {metadata_store.name} does not belong to the store in {store.name}, "
            "or is new"
        )
    elif store.is_new and not metadata_store.is_new:
        lost = os.path.join(store.name, LOG_FILE) if os.path.isdir(store.name) else "its content"
        return (
            f"the store in {store.name} is empty, but the metadata store {metadata_store.name} contains "
            f"runs: {lost} was lost, or the metadata store belongs to another store"
        )
    if (
        store.highest.writer > metadata_store.highest.writer
        or store.highest.metric > metadata_store.highest.metric
    ):
        return (
            f"the store in {store.name} has ids of runs or metrics that the metadata store "
            f"{metadata_store.name} has not assigned: the metadata store belongs to another store, is new, "
            "or older than the store"
        )
    return None


def sample_store_state(store: PairedStore) -> PairingState:
    pairing = store.pairing
    return PairingState(
        store.name, pairing and (pairing.id, pairing.starts), store.is_new, HighestIds(*store.highest())
    )


def metadata_store_state(metadata_store: MetadataStore) -> PairingState:
    numbers = metadata_store.issued_ids
    return PairingState(numbers.name, numbers.pairing(), not numbers.has_writers(), numbers.highest())


def check_metadata_store_exists(store: PairedStore, address: str) -> None:
    """Check that the metadata store of a used sample store exists, before opening would create it.

    Raises:
        StoreError: it does not exist.
    """
    path = sqlite_path(address)
    if path is None or os.path.exists(path):
        return
    pairing = store.pairing
    if pairing is not None:
        where = f" at {pairing.metadata_store}" if sqlite_path(pairing.metadata_store) != path else ""
        raise StoreError(
            f"{path} is missing: the store in {store.name} has a metadata store{where}: {REMEDY}"
        )
    if not store.is_new:
        raise StoreError(f"{path} is missing, and the store in {store.name} has samples: {REMEDY}")


def check_metadata_store_is_not_new(store: PairedStore, address: str) -> None:
    """Check that the metadata store exists while the sample store cannot say whether it should.

    Raises:
        StoreError: it does not exist.
    """
    path = sqlite_path(address)
    if path is not None and not os.path.exists(path):
        raise StoreError(f"{path} is missing, and {store.name} cannot be reached to see whether it is new")


def pair(store: PairedStore, metadata_store: MetadataStore) -> None:
    """Pair both, or count another start if they are paired already.

    Raises:
        StoreError: they do not match; nothing was changed.
    """

    def work() -> None:
        metadata_store.issued_ids.take_turns()
        ours, theirs = sample_store_state(store), metadata_store_state(metadata_store)
        reason = mismatch(ours, theirs)
        if reason is not None:
            raise StoreError(f"{reason}: {REMEDY}")
        stamp(store, metadata_store)

    # Servers that start at the same time must not each give the two an id of their own.
    metadata_store.in_one_transaction(work)


def stamp(store: PairedStore, metadata_store: MetadataStore) -> None:
    """Write the same id to both, and count this start."""
    ours, theirs = store.pairing, metadata_store.issued_ids.pairing()
    before = max(ours.starts if ours else 0, theirs[1] if theirs else 0)
    # Month files contain it, too, in case the log is lost.
    pairing_id = store.store_id or (theirs[0] if theirs else secrets.token_hex(16))
    # Metadata store first: it may be ahead of the sample store, but never behind.
    metadata_store.issued_ids.pair(pairing_id, before + 1)
    store.pair(Pairing(pairing_id, before + 1, metadata_store.issued_ids.name))
