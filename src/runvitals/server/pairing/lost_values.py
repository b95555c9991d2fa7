"""Reports the values that are lost because their objects of cold storage are missing or damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from functools import partial
from typing import TypeVar

from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.cold import rows
from runvitals.store.samples.cold.object_check import objects_checked
from runvitals.store.samples.cold.reading import ColdUnavailable
from runvitals.store.samples.cold.rows import ObjectValues
from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite.month_files import Month, MonthFiles

T = TypeVar("T")
_MAX_LISTED = 20

Report = Callable[[str], None]


def report_lost_values(
    folder: str, address: str | None, metadata_store: MetadataStore, report: Report
) -> None:
    """Read all objects of a store in a folder, and report the values of those that are missing or damaged.

    Args:
        address: of cold storage; None: there is none, or it was lost.
    """
    with closing(MonthFiles(folder)) as months:
        by_month = {month: _of_month(months, month, rows.object_sizes) for month in months.existing()}
        sizes = {sha256: size for of_month in by_month.values() for sha256, size in of_month.items()}
        if not sizes:
            return
        if address is None:
            report(f"{len(sizes):,} objects have old samples, nobody knows where: specify --cold-storage")
            return
        report(
            f"reading {len(sizes):,} objects ({sum(sizes.values()) / 1e6:.1f} MB) in {address} to see if "
            "values are lost; this changes nothing, and a server may be started meanwhile"
        )
        with objects_checked(address, sizes) as objects:
            try:
                objects.compare_sizes()
                objects.compare_contents()
            except ColdUnavailable as error:
                report(f"not all objects were read, so values may be lost: {error}")
            for month, of_month in by_month.items():
                for reason, digests in objects.reasons(of_month).items():
                    of_runs = _of_month(months, month, partial(rows.values_in, digests=digests))
                    for text in _lines(reason, of_runs, metadata_store):
                        report(f"{months.path(month)}: {text}")


def _of_month(months: MonthFiles, month: Month, read: Callable[[sqlite3.Connection], T]) -> T:
    with months.reader(month) as connection, database.store_errors(months.path(month)):
        return read(connection)


def _lines(reason: str, of_runs: list[ObjectValues], metadata_store: MetadataStore) -> Iterator[str]:
    yield f"{reason}: put them back, or these values are lost:"
    names = metadata_store.writers.run_names([lost.run for lost in of_runs[:_MAX_LISTED]])
    for lost in of_runs[:_MAX_LISTED]:
        metrics = "1 metric" if lost.metrics == 1 else f"{lost.metrics:,} metrics"
        name = names.get(lost.run, f"id {lost.run}")
        yield f"{lost.values:,} values of {metrics} of run {name}, from {_iso(lost.t0)} to {_iso(lost.t1)}"
    others = of_runs[_MAX_LISTED:]
    if others:
        yield f"{sum(lost.values for lost in others):,} values of {len(others):,} more runs"


def _iso(t_ms: int) -> str:
    return datetime.fromtimestamp(t_ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
