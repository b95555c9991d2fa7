"""Makes a store usable again after files were lost or damaged.

Readable rows of a damaged file are copied to a new one, and the damaged one is renamed: nothing is deleted.
Runs that have samples but are missing in the metadata store are restored under new names. Ids that may have
been assigned before are never assigned again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing

from runvitals.server.database.database import sqlite_path
from runvitals.server.database.issued_ids import HighestIds
from runvitals.server.database.server_link import count_servers
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.pairing import check, pairing, unknown_ids
from runvitals.server.pairing.lost_values import report_lost_values
from runvitals.server.pairing.pairing import MAX_ID, SKIPPED_IDS
from runvitals.server.pairing.recovery import fill_from_damaged, recover, recover_metrics
from runvitals.server.pairing.unknown_ids import RepairableStore
from runvitals.store import database_files
from runvitals.store.samples.clickhouse import ClickHouseAddress, ClickHouseStore
from runvitals.store.samples.clickhouse import stored_ids as clickhouse_ids
from runvitals.store.samples.cold.storage import ColdSettings
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import SqliteChunks, database, stored_ids
from runvitals.store.samples.sqlite import repair as samples
from runvitals.store.samples.sqlite.folder_lock import FolderLock

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
    with ExitStack() as stack:
        metadata_store, damaged = _open_metadata(stack, address, report)
        with SqliteChunks(folder, cold=cold) as store:
            _check_pair(store, metadata_store)
            _restore_samples(store, metadata_store, damaged, report)
        with SqliteChunks(folder, cold=cold) as store:
            _match(store, stored_ids.read(folder).metrics, metadata_store, report)
            in_cold = store.cold.settings.address if store.cold is not None else None
        report_lost_values(folder, in_cold, metadata_store, report)


def repair_clickhouse(samples: ClickHouseAddress, folder: str, address: str, report: Report) -> None:
    """Let the samples in ClickHouse and the metadata store at an address match. No server may run.

    Args:
        folder: of a server on this machine: batches that wait there are stored first.
        report: called with a line of text for each change.

    Raises:
        StoreError: a server is using the stores, the metadata store belongs to others, or ClickHouse cannot
            be reached.
        MetadataStoreError: the metadata store could not be opened.
    """
    with ExitStack() as stack:
        store = stack.enter_context(ClickHouseStore(samples, folder))
        metadata_store, _ = _open_metadata(stack, address, report)
        _check_pair(store, metadata_store)
        store.flush()
        issued = metadata_store.issued_ids.highest()
        for text in unknown_ids.renumber(store, MAX_ID, issued.writer + SKIPPED_IDS):
            report(text)
        _match(store, clickhouse_ids.read(store.clickhouse).metrics, metadata_store, report)


def _open_metadata(stack: ExitStack, address: str, report: Report) -> tuple[MetadataStore, bool]:
    """Open the metadata store, with what can be read of it; returns whether it was damaged."""
    damaged = _replace_damaged_metadata(address, report)
    metadata_store = stack.enter_context(open_metadata_store(address))
    running = metadata_store.write(count_servers)
    if running:
        name = metadata_store.issued_ids.name
        raise StoreError(f"servers use {name} ({running}): stop all of them before a repair")
    return metadata_store, damaged


def _match(store: RepairableStore, metrics: set[int], metadata_store: MetadataStore, report: Report) -> None:
    """Let the metadata store know all runs and metrics that have samples, and pair both.

    Args:
        metrics: that have samples.
    """
    lane_ids = set(metadata_store.writers.lanes())
    unknown = metadata_store.issued_ids.unknown_metrics(metrics)
    _recover_runs(store, metadata_store, lane_ids, report)
    _recover_metrics(store, metadata_store, lane_ids, unknown, report)
    metadata_store.issued_ids.skip_to(HighestIds(*store.highest()), SKIPPED_IDS)
    pairing.stamp(store, metadata_store)
    report(f"{store.name} and {metadata_store.issued_ids.name} are paired")


def _restore_samples(
    store: SqliteChunks, metadata_store: MetadataStore, was_damaged: bool, report: Report
) -> None:
    lane_ids = set(metadata_store.writers.lanes())
    issued = metadata_store.issued_ids.highest()

    def is_wanted(lane: int) -> bool:
        """Return whether a lane is not known to belong to a deleted run."""
        return was_damaged or lane in lane_ids or lane > issued.writer

    for text in samples.restore_from_cold_storage(store, is_wanted):
        report(text)
    for path in store.accept_missing():
        report(f"{path} was deleted: its samples are lost unless it is restored from a backup")
    for text in samples.restore(store, is_wanted):
        report(text)
    store.flush()
    for text in unknown_ids.renumber(store, MAX_ID, issued.writer + SKIPPED_IDS):
        report(text)


def _replace_damaged_metadata(address: str, report: Report) -> bool:
    """Replace the metadata store, if it is a damaged file, by one with its readable rows.

    Returns whether it was. It is complete before the damaged file gets another name: an interrupted repair is
    done again.
    """
    path = sqlite_path(address)
    if path is None:
        return False
    recovered = f"{path}.recovered"
    if os.path.exists(recovered) and not os.path.lexists(path):
        os.rename(recovered, path)
        report(f"{recovered} is complete, and was renamed to {path}")
        return True
    if not os.path.exists(path):
        return False
    obstacle = database_files.obstacle(path)
    if obstacle is not None:
        raise StoreError(obstacle)  # its rows are not damaged
    problems = [str(problem) for problem in check.damage(path)]
    if not problems:
        return False
    database.unlink(recovered)
    rows = 0
    with open_metadata_store(recovered) as metadata_store:
        if os.path.isfile(path):
            rows = fill_from_damaged(metadata_store, path)
    aside = database.set_aside(path)
    os.rename(recovered, path)
    report(f"{problems[0]}; renamed it to {aside}, and recovered {rows:,} rows of it")
    return True


def _check_pair(store: RepairableStore, metadata_store: MetadataStore) -> None:
    ours, theirs = store.store_id, metadata_store.issued_ids.pairing()
    if ours is not None and theirs is not None and ours != theirs[0]:
        raise StoreError(
            f"the metadata store {metadata_store.issued_ids.name} belongs to a different store than "
            f"{store.name}: specify the right one with --metadata, "
            "or a new one to restore runs from their samples"
        )


def _recover_runs(
    store: RepairableStore, metadata_store: MetadataStore, run_ids: set[int], report: Report
) -> None:
    """Restore the runs that have samples but are missing in the metadata store."""
    runs = unknown_ids.unknown_runs(store, run_ids)
    if runs:
        recover(metadata_store, runs)
        report(
            f"restored {len(runs)} runs that the metadata store did not contain, as `recovered-…` in project "
            "`recovered`"
        )


def _recover_metrics(
    store: RepairableStore,
    metadata_store: MetadataStore,
    metric_ids: set[int],
    unknown: set[int],
    report: Report,
) -> None:
    """Restore the metrics that known runs have samples of, but that are missing in the metadata store."""
    by_run = unknown_ids.runs_with_metrics(store, metric_ids, unknown) if unknown else {}
    if by_run:
        recover_metrics(metadata_store, by_run)
        report(f"restored metrics of {len(by_run)} runs that had lost their names, as `recovered.metric_…`")
