"""Statistics of an envelope's `log()` rows, for the summary of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.model.names import RESERVED
from runvitals.server.ingest.validation import ValidEnvelope
from runvitals.server.runs.storage.log_summaries import LoggedRows, LoggedValues
from runvitals.server.runs.storage.metrics import KeyList
from runvitals.server.runs.storage.writer_registration import RegisteredWriter


@dataclass(slots=True)
class RowStatistics:
    """Rows of `log()` that a writer sent together, or one after the other: one value for each metric.

    Args:
        seq: the number of the last rows.
        last_ms: the time of the last value; only where there is one.
        last_step: the highest.
    """

    run_id: int
    writer: str
    names: int
    seq: int
    metric_ids: tuple[int, ...]
    counts: Integers
    totals: Floats
    least: Floats
    greatest: Floats
    last: Floats
    last_ms: Integers
    last_step: float

    def add(self, other: RowStatistics) -> None:
        """Add other rows of the same names."""
        newer = (other.counts > 0) & ((self.counts == 0) | (other.last_ms >= self.last_ms))
        self.last = np.where(newer, other.last, self.last)
        self.last_ms = np.where(newer, other.last_ms, self.last_ms)
        self.counts = self.counts + other.counts
        with np.errstate(over="ignore", invalid="ignore"):
            self.totals = self.totals + other.totals
        self.least = np.minimum(self.least, other.least)
        self.greatest = np.maximum(self.greatest, other.greatest)
        self.seq = max(self.seq, other.seq)
        self.last_step = max(self.last_step, other.last_step)

    def rows(self, keys: Mapping[int, str], what: Literal["sent", "new"] = "sent") -> LoggedRows:
        """The rows with names.

        Args:
            keys: the names of the metrics.
        """
        columns = (self.counts, self.totals, self.least, self.greatest, self.last, self.last_ms)
        values = zip(*(column.tolist() for column in columns), strict=True)
        metrics = {
            keys[metric_id]: LoggedValues(*of_metric)
            for metric_id, of_metric in zip(self.metric_ids, values, strict=True)
            if of_metric[0] and keys[metric_id] not in RESERVED
        }
        return LoggedRows(
            self.run_id, self.writer, self.names, self.seq, metrics, what, last_step=self.last_step
        )


def logged_columns(valid: ValidEnvelope, writer: RegisteredWriter, sent: KeyList) -> RowStatistics | None:
    """Count, sum, minimum, maximum and last value of each name in an envelope.

    None if it has no `log()` rows.

    Args:
        sent: the envelope's list of keys.
    """
    columns, seq = valid.columns, valid.envelope.seq
    count = len(sent.metric_ids)
    if columns is None or not columns.has_step or seq is None or not count:
        return None
    values, about = columns.values[:, :count], (writer.run_id, valid.envelope.writer, sent.id, seq)
    absent, last_step = np.isnan(values), float(columns.values[:, -1].max())
    if not absent.any():
        with np.errstate(over="ignore", invalid="ignore"):
            totals = values.sum(axis=0)
        counts, last_ms = np.full(count, len(values)), np.full(count, columns.t[-1])
        least, greatest = values.min(axis=0), values.max(axis=0)
        last = values[-1]
        return RowStatistics(
            *about, sent.metric_ids, counts, totals, least, greatest, last, last_ms, last_step
        )
    present = ~absent
    counts = present.sum(axis=0)
    if not counts.any():
        return None
    last_rows = len(values) - 1 - present[::-1].argmax(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        totals = np.where(present, values, 0.0).sum(axis=0)
    least = np.where(present, values, np.inf).min(axis=0)
    greatest = np.where(present, values, -np.inf).max(axis=0)
    last, last_ms = values[last_rows, np.arange(count)], columns.t[last_rows]
    return RowStatistics(*about, sent.metric_ids, counts, totals, least, greatest, last, last_ms, last_step)
