"""Statistics of an envelope's `log()` rows, for the summary of its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runvitals.model.names import RESERVED
from runvitals.server.ingest.validation import ValidEnvelope
from runvitals.store.metadata import KeyList
from runvitals.store.metadata.log_summaries import LoggedRows, LoggedValues
from runvitals.store.metadata.writer_registration import RegisteredWriter


def logged_rows(
    valid: ValidEnvelope,
    writer: RegisteredWriter,
    sent: KeyList,
    keys_of: Callable[[Sequence[int]], Mapping[int, str]],
) -> LoggedRows | None:
    """Count, sum, minimum, maximum and last value of each name in an envelope; None if it has no `log()`
    rows.

    Args:
        sent: the envelope's list of keys.
        keys_of: the keys of some metric ids.
    """
    columns, seq = valid.columns, valid.envelope.seq
    count = len(sent.metric_ids)
    if columns is None or not columns.has_step or seq is None or not count:
        return None
    values = columns.values[:, :count]
    present = ~np.isnan(values)
    counts = present.sum(axis=0)
    last_rows = len(values) - 1 - present[::-1].argmax(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        totals = np.where(present, values, 0.0).sum(axis=0)
    minima = np.where(present, values, np.inf).min(axis=0)
    maxima = np.where(present, values, -np.inf).max(axis=0)
    keys = keys_of(sent.metric_ids)
    metrics = {}
    for column, metric_id in enumerate(sent.metric_ids):
        name = keys[metric_id]
        if counts[column] and name not in RESERVED:
            row = int(last_rows[column])
            metrics[name] = LoggedValues(
                int(counts[column]),
                float(totals[column]),
                float(minima[column]),
                float(maxima[column]),
                float(values[row, column]),
                int(columns.t[row]),
            )
    return LoggedRows(writer.run_id, valid.envelope.writer, sent.id, seq, metrics) if metrics else None
