"""Pairs a sample store with its metadata store, and detects mismatches.

The sample store contains ids that the metadata store assigned. With another metadata store, or an older copy,
samples of one run would be shown under the name of another. When they are first used together, both get the
same random id; both count server starts. A server starts only if they match.

A start is committed in the metadata store first, then in the sample store. Whatever interrupts it in between,
the metadata store is ahead, which every later start accepts. A metadata store that is behind has forgotten
ids. It is used in two cases, and then assigns none of them again: it is one start behind and knows all ids
that have samples, or it is in PostgreSQL, which is restored from dumps and fails over to copies.
"""

from __future__ import annotations

import logging
import os
import secrets
from dataclasses import dataclass
from typing import Protocol

from runvitals.server.database.database import sqlite_path
from runvitals.server.database.issued_ids import HighestIds, IssuedIds
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite.log import NAME as LOG_FILE
from runvitals.store.samples.sqlite.log import Pairing

SKIPPED_IDS = 100_000
"""Ids that are skipped when some may have been assigned that are not known any more."""
MAX_ID = 1 << 30
"""Of a run or writer. Metadata stores count up from 1: a larger id is damage, and leaves none to assign."""
REMEDY = (
    "specify the right one with --metadata, restore it from a backup, or pair the two with "
    "`runvitals store repair`"
)

log = logging.getLogger("runvitals.store")


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
    """The pairing of a sample store or metadata store, as it is stored there.

    Args:
        name: of the folder or the database.
        pairing: id and number of starts; None if it was never paired.
        is_new: nothing was ever stored, or no writer was ever registered.
        highest: the highest ids that it contains or has assigned.
        may_be_older: a metadata store that is used also if it was restored from an older copy.
    """

    name: str
    pairing: tuple[str, int] | None
    is_new: bool
    highest: HighestIds
    may_be_older: bool = False


def mismatch(store: PairingState, metadata_store: PairingState) -> str | None:
    """Why a sample store and a metadata store must not be used together; None if they may be."""
    if store.pairing is not None and metadata_store.pairing is not None:
        if store.pairing[0] != metadata_store.pairing[0]:
            return f"the metadata store {metadata_store.name} belongs to a different store than {store.name}"
        if metadata_store.may_be_older and max(store.highest.writer, store.highest.metric) <= MAX_ID:
            return None
        if metadata_store.pairing[1] < store.pairing[1] - 1:
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
    if _has_unassigned(store, metadata_store):
        return (
            f"the store in {store.name} has ids of runs or metrics that the metadata store "
            f"{metadata_store.name} has not assigned: the metadata store belongs to another store, is new, "
            "or older than the store"
        )
    return None


def lag(store: PairingState, metadata_store: PairingState) -> str | None:
    """Describe the loss if a metadata store is behind the sample store; None if it is not.

    Ids that it has assigned and forgotten must be skipped before it is used.
    """
    ours, theirs = store.pairing, metadata_store.pairing
    if ours is None or theirs is None:
        return None
    if _has_unassigned(store, metadata_store):
        return (
            f"the metadata store {metadata_store.name} is older than the samples in {store.name}: it was "
            "restored from a copy. What was recorded after that copy is lost, unless the machines send it "
            "again. Samples of runs and metrics that it does not know are kept, but not shown before "
            "`runvitals store repair` names them; none of their ids is assigned again"
        )
    if theirs[1] < ours[1]:
        return (
            f"the metadata store {metadata_store.name} has counted fewer server starts ({theirs[1]}) than "
            f"the store in {store.name} ({ours[1]}): a start was interrupted, or it was restored from a "
            "copy. It knows all runs and metrics that have samples; other changes after that copy are lost. "
            "No id that may have been assigned since is assigned again"
        )
    return None


def _has_unassigned(store: PairingState, metadata_store: PairingState) -> bool:
    """Return whether the sample store has ids that the metadata store has not assigned."""
    return (
        store.highest.writer > metadata_store.highest.writer
        or store.highest.metric > metadata_store.highest.metric
    )


def sample_store_state(store: PairedStore) -> PairingState:
    """Return what a sample store contains about its pairing."""
    pairing = store.pairing
    return PairingState(
        store.name, pairing and (pairing.id, pairing.starts), store.is_new, HighestIds(*store.highest())
    )


def metadata_store_state(issued: IssuedIds) -> PairingState:
    """Return what a metadata store contains about its pairing."""
    return PairingState(
        issued.name, issued.pairing(), not issued.has_writers(), issued.highest(), issued.may_be_older
    )


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
    """Raise StoreError if there is no metadata store, while the sample store cannot say if one is due."""
    path = sqlite_path(address)
    if path is not None and not os.path.exists(path):
        raise StoreError(f"{path} is missing, and {store.name} cannot be reached to see whether it is new")


def pair(store: PairedStore, metadata_store: MetadataStore) -> None:
    """Pair both, or count another start if they are paired already.

    Raises:
        StoreError: they do not match, or the sample store could not be written: another start is accepted.
        MetadataStoreError: the metadata store could not be read or written.
    """
    # Sample store first: what is added meanwhile is in the metadata store by the time it is read.
    ours, store_id = sample_store_state(store), store.store_id

    def work() -> tuple[Pairing, str | None]:
        metadata_store.issued_ids.take_turns()
        theirs = metadata_store_state(metadata_store.issued_ids)
        reason = mismatch(ours, theirs)
        if reason is not None:
            raise StoreError(f"{reason}: {REMEDY}")
        behind = lag(ours, theirs)
        if behind is not None:
            metadata_store.issued_ids.skip_to(ours.highest, SKIPPED_IDS)
        return _count_start(ours, store_id, metadata_store), behind

    # Servers that start at the same time must not each give the two an id of their own.
    counted, behind = metadata_store.in_one_transaction(work)
    if behind is not None:
        log.warning("%s", behind)
    store.pair(counted)


def stamp(store: PairedStore, metadata_store: MetadataStore) -> None:
    """Write the same id to both, and count this start."""
    store.pair(_count_start(sample_store_state(store), store.store_id, metadata_store))


def _count_start(store: PairingState, store_id: str | None, metadata_store: MetadataStore) -> Pairing:
    """Write the id of both to the metadata store, and count this start; returns what the sample store gets.

    Args:
        store_id: of the sample store. Month files contain it, too, in case the log is lost.
    """
    theirs = metadata_store.issued_ids.pairing()
    starts = 1 + max(pairing[1] if pairing else 0 for pairing in (store.pairing, theirs))
    pairing_id = store_id or (theirs[0] if theirs else secrets.token_hex(16))
    metadata_store.issued_ids.pair(pairing_id, starts)
    return Pairing(pairing_id, starts, metadata_store.issued_ids.name)
