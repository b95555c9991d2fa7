"""Makes a store usable again after files were lost or damaged.

Readable rows of a damaged file are copied to a new one, and the damaged one is renamed: nothing is deleted.
Runs that have samples but are missing in the metadata store are restored under new names. Ids that may have
been assigned before are never assigned again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing

from runvitals.store import check, companion_files, pairing
from runvitals.store.metadata import MetadataStore, open_metadata_store
from runvitals.store.metadata.database import sqlite_path
from runvitals.store.metadata.issued_ids import HighestIds
from runvitals.store.metadata.recovery import RecoveredRun, fill_from_damaged, recover
from runvitals.store.pairing import LARGEST_ID, SKIPPED_IDS
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite_chunks import SqliteChunks, database
from runvitals.store.samples.sqlite_chunks import repair as samples
from runvitals.store.samples.sqlite_chunks.cold.storage import ColdSettings
from runvitals.store.samples.sqlite_chunks.folder_lock import FolderLock

Report = Callable[[str], None]


def repair(folder: str, address: str, report: Report, cold: ColdSettings | None = None) -> None:
    """Repair the sample store in a folder and the metadata store at an address.

    Args:
        report: called with a line of text for each change.
        cold: where old samples are; None: as the log says.

    Raises:
        StoreError: a server is using the store, or the metadata store belongs to another one.
        MetadataStoreError: the metadata store could not be opened.
    """
    with closing(FolderLock(folder)):
        samples.repair_log(folder, report)
        samples.set_damaged_months_aside(folder, report)
    damaged = _set_metadata_aside(address, report)
    with ExitStack() as stack:
        metadata_store = stack.enter_context(open_metadata_store(address))
        if damaged is not None and os.path.isfile(damaged):
            report(
                f"recovered {fill_from_damaged(metadata_store, damaged):,} rows of {damaged} into {address}"
            )
        with SqliteChunks(folder, cold=cold) as store:
            _check_pair(store, metadata_store)
            _restore_samples(store, metadata_store, damaged is not None, report)
        store = stack.enter_context(SqliteChunks(folder, cold=cold))
        known = set(metadata_store.writers.lanes())
        _recover_runs(store, metadata_store, known, report)
        ours = HighestIds(*store.highest())
        metadata_store.issued_ids.skip_to(ours, SKIPPED_IDS)
        pairing.stamp(store, metadata_store)
        report(f"{folder} and {metadata_store.issued_ids.name} are paired")


def _restore_samples(
    store: SqliteChunks, metadata_store: MetadataStore, was_damaged: bool, report: Report
) -> None:
    known = set(metadata_store.writers.lanes())
    issued = metadata_store.issued_ids.highest()

    def is_wanted(lane: int) -> bool:
        """Whether a lane is not known to belong to a deleted run."""
        return was_damaged or lane in known or lane > issued.writer

    for text in samples.restore_from_cold_storage(store, is_wanted):
        report(text)
    for path in store.accept_missing():
        report(f"{path} was deleted: its samples are lost unless it is restored from a backup")
    for text in samples.restore(store, is_wanted):
        report(text)
    store.flush()
    for text in samples.renumber(store, LARGEST_ID, issued.writer + SKIPPED_IDS):
        report(text)


def _set_metadata_aside(address: str, report: Report) -> str | None:
    """Rename the metadata store if it is a damaged file. Returns the new path."""
    path = sqlite_path(address)
    if path is None or not os.path.exists(path):
        return None
    obstacle = companion_files.obstacle(path)
    if obstacle is not None:
        raise StoreError(obstacle)  # its rows are not damaged
    problems = [str(problem) for problem in check.damage(path)]
    if not problems:
        return None
    aside = database.set_aside(path)
    report(f"{problems[0]}; renamed it to {aside}")
    return aside


def _check_pair(store: SqliteChunks, metadata_store: MetadataStore) -> None:
    ours, theirs = store.store_id, metadata_store.issued_ids.pairing()
    if ours is not None and theirs is not None and ours != theirs[0]:
        raise StoreError(
            f"the metadata store {metadata_store.issued_ids.name} belongs to a different store than "
            f"{store.folder}: specify the right one with --catalogue, "
            "or a new one to restore runs from their samples"
        )


def _recover_runs(
    store: SqliteChunks, metadata_store: MetadataStore, known: set[int], report: Report
) -> None:
    """Restore the runs that have samples but are missing in the metadata store."""
    runs = [
        RecoveredRun(lane, tuple(sorted(metrics)), t0, t1)
        for lane, (metrics, t0, t1) in samples.extents(store, known).items()
    ]
    if runs:
        recover(metadata_store, runs)
        report(
            f"restored {len(runs)} runs that the metadata store did not contain, as `recovered-…` in project "
            "`recovered`"
        )
