"""Making a store usable again after files were lost or damaged.

What can be read of a damaged file goes into a new one, and the damaged one gets another name: nothing is
deleted. Runs that have samples, and that the catalogue does not know any more, come back under new names.
Numbers that may have been given before are never given again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing

from runvitals.store import check, pairing
from runvitals.store.metadata import MetadataStore, open_metadata_store
from runvitals.store.metadata.database import sqlite_path
from runvitals.store.metadata.issued_ids import HighestIds
from runvitals.store.metadata.recovery import RecoveredRun, fill_from_damaged, recover
from runvitals.store.samples.contract import StoreError
from runvitals.store.samples.sqlite_chunks import SqliteChunks, database
from runvitals.store.samples.sqlite_chunks import repair as samples
from runvitals.store.samples.sqlite_chunks.folder_lock import FolderLock

LEFT_OUT = 10_000
"""Numbers that are not given: what was lost may have had them."""

Say = Callable[[str], None]


def repair(folder: str, address: str, say: Say) -> None:
    """Repair the store in a folder and the catalogue at an address.

    Args:
        say: called with a line for each thing done.

    Raises:
        StoreError: a server is using the store; or the catalogue belongs to another one.
        MetadataStoreError: the metadata store could not be opened.
    """
    with closing(FolderLock(folder)):
        samples.repair_log(folder, say)
        samples.set_damaged_months_aside(folder, say)
    damaged = _set_catalogue_aside(address, say)
    with ExitStack() as stack:
        store = stack.enter_context(SqliteChunks(folder))
        catalogue = stack.enter_context(open_metadata_store(address))
        if damaged is not None:
            say(
                f"{fill_from_damaged(catalogue, damaged):,} rows of {damaged} were read, and are in {address}"
            )
        _refuse_anothers(store, catalogue)
        known = set(catalogue.writers.lanes())
        given = catalogue.numbers.given()

        def is_wanted(lane: int) -> bool:
            """Not those of runs that were deleted, as far as that is known."""
            return damaged is not None or lane in known or lane > given.writer

        for path in store.accept_missing():
            say(f"{path} was deleted: its samples are lost, unless it is put back from a backup")
        for text in samples.bring_back(store, is_wanted):
            say(text)
        store.flush()
        _recover_runs(store, catalogue, known, say)
        ours = HighestIds(*store.highest())
        catalogue.numbers.go_on_after(ours, LEFT_OUT)
        pairing.stamp(store, catalogue)
        say(f"{folder} and {catalogue.numbers.name} belong together")


def _set_catalogue_aside(address: str, say: Say) -> str | None:
    """Where the catalogue lies now, if it is a file and damaged."""
    path = sqlite_path(address)
    if path is None or not os.path.exists(path):
        return None
    problems = [str(problem) for problem in check.damage(path)]
    if not problems:
        return None
    aside = database.set_aside(path)
    say(f"{problems[0]}; it is now {aside}")
    return aside


def _refuse_anothers(store: SqliteChunks, catalogue: MetadataStore) -> None:
    ours, theirs = store.store_id, catalogue.numbers.pairing()
    if ours is not None and theirs is not None and ours != theirs[0]:
        raise StoreError(
            f"the catalogue {catalogue.numbers.name} belongs to another store than {store.folder}: name the "
            "right one with --catalogue, or a new one, which gets what can be told from the samples"
        )


def _recover_runs(store: SqliteChunks, catalogue: MetadataStore, known: set[int], say: Say) -> None:
    """Bring back runs that have samples and nobody knows."""
    found = [
        RecoveredRun(lane, tuple(sorted(metrics)), t0, t1)
        for lane, (metrics, t0, t1) in samples.extents(store, known).items()
    ]
    if found:
        recover(catalogue, found)
        say(
            f"{len(found)} runs have samples, and the catalogue did not know them: they are in project "
            "`recovered`, as `recovered-…`"
        )
