"""Deletes runs and old samples."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from runvitals.base.backoff import Backoff
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.preparation import Preparation
from runvitals.store.samples.clickhouse.rows import month_end_ms, month_number
from runvitals.store.samples.clickhouse.schema import TABLES
from runvitals.store.samples.clickhouse.selection import id_list
from runvitals.store.samples.clickhouse.series_hints import HINTS_APART_MS
from runvitals.store.samples.interface import StoreUnavailable

_MONTH = np.dtype([("month", "<u4"), ("bytes", "<u8")])
_OLD = np.dtype([("old", "<u8"), ("all", "<u8")])
_CUT = np.dtype([("t", "<i8")])
_MUTATION_S = 600.0
_POLL_S = 0.02
_WORTH_REWRITING = 0.25
"""Part of a month's samples that must be too old before the month is rewritten without them."""
_SHRUNK_TO = 0.9
"""Removal goes on until this part of the maximum size is left, so that it does not run all the time."""


class Removal:
    """Deletes from the tables of samples. One caller at a time."""

    def __init__(self, clickhouse: ClickHouse, preparation: Preparation) -> None:
        self._clickhouse = clickhouse
        self._preparation = preparation

    def delete(self, runs: Sequence[int]) -> None:
        """Delete everything about runs. If it fails, part is left; delete them again."""
        for table in TABLES:  # `batches` is not the first: an acknowledged batch is complete, or not listed
            self._delete(table, f"run IN ({id_list(runs)})")

    def drop_before(self, t_ms: int) -> None:
        """Delete older samples: whole months, and of the month that is cut once a quarter of it is older."""
        for month in self._months():
            if month_end_ms(month) <= t_ms:
                self._drop(month)
        month = month_number(max(t_ms, 0))
        counts = self._clickhouse.select(
            f"SELECT countIf(t < {t_ms}) AS old, count() AS every FROM samples WHERE month = {month}", _OLD
        )
        old, every = int(counts["old"][0]), int(counts["all"][0])
        if old and old >= every * _WORTH_REWRITING:
            self._delete("samples", f"month = {month} AND t < {t_ms}", rewrite=True)
            self._forget_before(t_ms)

    def shrink_to(self, size_bytes: int) -> None:
        """Delete the oldest samples until the tables take at most as many bytes."""
        months = self._months()
        while len(months) > 1 and self.size_bytes() > size_bytes:
            # The oldest goes as a whole, unless a part of it is enough.
            excess = self.size_bytes() - size_bytes
            oldest = min(months)
            if excess < months[oldest]:
                break
            self._drop(oldest)
            del months[oldest]
        for attempt in range(4):
            size = self.size_bytes()
            if size <= size_bytes or not months:
                return
            # Some parts compress better than others, so that one cut may not be enough.
            self._cut_oldest(size - size_bytes * _SHRUNK_TO ** (1 + attempt))
            months = self._months()

    def size_bytes(self) -> int:
        """Return the bytes that the tables take on disk, without replaced files, which stay for minutes."""
        parts = self._clickhouse.layout.parts(*TABLES)
        return int(self._clickhouse.command(f"SELECT sum(bytes_on_disk) {parts}") or 0)

    def _cut_oldest(self, excess_bytes: float) -> None:
        """Delete about as many bytes of the oldest month."""
        months = self._months()
        month = min(months)
        part = min(excess_bytes / max(months[month], 1), 1.0)
        cut = self._clickhouse.select(
            f"SELECT toInt64(quantile({part:.4f})(t)) AS t FROM samples WHERE month = {month}", _CUT
        )
        cut_ms = month_end_ms(month) if part >= 1.0 else int(cut["t"][0]) + 1
        self._delete("samples", f"month = {month} AND t < {cut_ms}", rewrite=True)
        self._forget_before(cut_ms)

    def _drop(self, month: int) -> None:
        self._alter("samples", f"DROP PARTITION {month}", f"month = {month}")
        self._forget_before(month_end_ms(month))

    def _months(self) -> dict[int, int]:
        """Return the months that have samples, with the bytes that they take, in order."""
        rows = self._clickhouse.select(
            "SELECT toUInt32(partition) AS month, sum(bytes_on_disk) AS bytes "
            f"{self._clickhouse.layout.parts('samples')} GROUP BY month ORDER BY month",
            _MONTH,
        )
        return dict(rows.tolist())

    def _forget_before(self, t_ms: int) -> None:
        """Runs and series whose last time is older have no samples any more."""
        self._delete("extents", f"last < {t_ms}")
        self._delete("series", f"t < {t_ms - HINTS_APART_MS}")

    def _delete(self, table: str, condition: str, rewrite: bool = False) -> None:
        """Delete rows, and wait until it is done.

        Args:
            rewrite: give the space back now, which takes longer.
        """
        if self._clickhouse.layout.cluster is not None:
            self._alter(table, f"DELETE WHERE {condition}", condition)
            return
        if self._preparation.features.lightweight_deletes and not rewrite:
            self._clickhouse.command(f"DELETE FROM {table} WHERE {condition}", {"mutations_sync": "2"})
            return
        self._clickhouse.command(f"ALTER TABLE {table} DELETE WHERE {condition}")
        self._wait_until_zero(
            "SELECT count() FROM system.mutations WHERE NOT is_done AND database = currentDatabase() "
            f"AND table = '{table}'",
            table,
        )

    def _alter(self, table: str, change: str, condition: str) -> None:
        """Change a table so that no row fulfils a condition, and wait until none is read.

        Nodes of a cluster that are away do it when they are back.
        """
        layout = self._clickhouse.layout
        statement = f"ALTER TABLE {layout.altered_table(table)} {change}"
        if layout.cluster is None:
            self._clickhouse.command(statement)
            return
        count = f"SELECT count() FROM (SELECT 1 FROM {table} WHERE {condition} LIMIT 1)"
        if not int(self._clickhouse.command(count)):
            return  # a node may execute it at any later time, also on rows that are inserted after this call
        self._clickhouse.command(statement, {"distributed_ddl_task_timeout": "0"})
        self._wait_until_zero(count, table)

    def _wait_until_zero(self, count: str, table: str) -> None:
        """Wait until a query that counts what is left to delete of a table returns 0."""
        until_s = time.monotonic() + _MUTATION_S
        pause = Backoff(first_s=_POLL_S, longest_s=1.0)
        while int(self._clickhouse.command(count)):
            if time.monotonic() > until_s:
                raise StoreUnavailable(f"ClickHouse at {self._clickhouse.address} still deletes from {table}")
            time.sleep(pause.note_failure(time.monotonic()))
