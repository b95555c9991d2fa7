"""A store of samples and its catalogue, each of which knows the other.

The store knows runs and metrics by the catalogue's numbers. With another catalogue, or an older one, samples
of one run would be shown under the name of another. So both are stamped with one id when they are first used
together, and with a count of how often that was; a server starts only where they agree.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from runvitals.store.metadata import MetadataStore
from runvitals.store.metadata.database import sqlite_path
from runvitals.store.metadata.issued_ids import HighestIds
from runvitals.store.samples.contract import StoreError
from runvitals.store.samples.sqlite_chunks import SqliteChunks
from runvitals.store.samples.sqlite_chunks.log import Pairing

WAY_OUT = (
    "name the right one with --catalogue, put it back from a backup, or have the two made to fit with "
    "`runvitals store repair`"
)


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two says.

    Args:
        name: of the folder or the database.
        pairing: id and number of starts; None: not said yet.
        is_new: nothing was ever stored, or nobody ever joined.
        given: the highest numbers that it has.
    """

    name: str
    pairing: tuple[str, int] | None
    is_new: bool
    given: HighestIds


def mismatch(store: Side, catalogue: Side) -> str | None:
    """Why a store and a catalogue cannot be used together; None: they can."""
    if store.pairing is not None and catalogue.pairing is not None:
        if store.pairing[0] != catalogue.pairing[0]:
            return f"the catalogue {catalogue.name} belongs to another store than {store.name}"
        if catalogue.pairing[1] < store.pairing[1]:
            return f"the catalogue {catalogue.name} is older than the store in {store.name}"
    elif store.pairing is not None:
        return f"the catalogue {catalogue.name} is not that of the store in {store.name}, or is new"
    elif store.is_new and not catalogue.is_new:
        return (
            f"the store in {store.name} is empty, and the catalogue {catalogue.name} knows runs: "
            f"{os.path.join(store.name, 'log.db')} was lost, or the catalogue is another store's"
        )
    if store.given.writer > catalogue.given.writer or store.given.metric > catalogue.given.metric:
        return (
            f"the store in {store.name} has numbers of runs or metrics that the catalogue {catalogue.name} "
            "has never given: it is another store's, new, or older"
        )
    return None


def store_side(store: SqliteChunks) -> Side:
    pairing = store.pairing
    return Side(
        store.folder, pairing and (pairing.id, pairing.starts), store.is_new, HighestIds(*store.highest())
    )


def catalogue_side(catalogue: MetadataStore) -> Side:
    numbers = catalogue.numbers
    return Side(numbers.name, numbers.pairing(), not numbers.has_writers(), numbers.given())


def check_catalogue_there(store: SqliteChunks, address: str) -> None:
    """Before a catalogue is opened, which would make it.

    Raises:
        StoreError: the store had one, and there is none at this address.
    """
    path = sqlite_path(address)
    if path is None or os.path.exists(path):
        return
    known = store.pairing
    if known is not None:
        at = f", which is at {known.catalogue}" if sqlite_path(known.catalogue) != path else ""
        raise StoreError(f"{path} is missing: the store in {store.folder} has a catalogue{at}: {WAY_OUT}")
    if not store.is_new:
        raise StoreError(f"{path} is missing, and the store in {store.folder} has samples: {WAY_OUT}")


def pair(store: SqliteChunks, catalogue: MetadataStore) -> None:
    """Note in both that they are used together, once more.

    Raises:
        StoreError: they do not belong together; nothing has been changed.
    """
    ours, theirs = store_side(store), catalogue_side(catalogue)
    reason = mismatch(ours, theirs)
    if reason is not None:
        raise StoreError(f"{reason}: {WAY_OUT}")
    stamp(store, catalogue)


def stamp(store: SqliteChunks, catalogue: MetadataStore) -> None:
    """Give both the same id, and count this start."""
    ours, theirs = store.pairing, catalogue.numbers.pairing()
    before = max(ours.starts if ours else 0, theirs[1] if theirs else 0)
    # The months' files are stamped with it too, which is all that says so where the log was lost.
    pairing_id = store.store_id or (theirs[0] if theirs else secrets.token_hex(16))
    # The catalogue first: it may be ahead of the store, and never the other way round.
    catalogue.numbers.pair(pairing_id, before + 1)
    store.pair(Pairing(pairing_id, before + 1, catalogue.numbers.name))
