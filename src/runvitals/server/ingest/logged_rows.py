"""Rows of `log()` in an envelope, as the run's summary needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runvitals.model.names import RESERVED
from runvitals.server.ingest.validation import Prepared
from runvitals.store.metadata import KeyList
from runvitals.store.metadata.log_summaries import LoggedRows, LoggedValues
from runvitals.store.metadata.writer_registration import RegisteredWriter


def logged_rows(
    one: Prepared, who: RegisteredWriter, sent: KeyList, keys_of: Callable[[Sequence[int]], Mapping[int, str]]
) -> LoggedRows | None:
    """What the values of each name in an envelope come to; None where it has no rows of `log()`.

    Args:
        sent: the list of the envelope's keys.
        keys_of: the keys of some numbers.
    """
    columns, seq = one.columns, one.envelope.seq
    count = len(sent.metric_ids)
    if columns is None or not columns.has_step or seq is None or not count:
        return None
    values = columns.values[:, :count]
    there = ~np.isnan(values)
    counts = there.sum(axis=0)
    last = len(values) - 1 - there[::-1].argmax(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        totals = np.where(there, values, 0.0).sum(axis=0)
    least = np.where(there, values, np.inf).min(axis=0)
    greatest = np.where(there, values, -np.inf).max(axis=0)
    keys = keys_of(sent.metric_ids)
    metrics = {}
    for place, number in enumerate(sent.metric_ids):
        name = keys[number]
        if counts[place] and name not in RESERVED:
            row = int(last[place])
            metrics[name] = LoggedValues(
                int(counts[place]),
                float(totals[place]),
                float(least[place]),
                float(greatest[place]),
                float(values[row, place]),
                int(columns.t[row]),
            )
    return LoggedRows(who.run_id, one.envelope.writer, sent.id, seq, metrics) if metrics else None
