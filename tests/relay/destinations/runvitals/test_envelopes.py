"""Splitting a batch into envelopes."""

from __future__ import annotations

from runvitals.relay.batch import Batch, LogRow, RunFacts, WriterFacts
from runvitals.relay.destinations.runvitals.envelopes import split_batch

T0 = 1_760_000_000_000
FAR = 253_370_764_799_999


def test_far_future_row_does_not_shift_later_rows() -> None:
    batch = Batch(RunFacts("r", "p"), WriterFacts("train.h.1.1"), 0, 5)
    times_ms = [T0, FAR, T0, 5, FAR, T0 + 2000]
    batch.logs = [LogRow(seq, time_ms, seq, {"loss": 1.0}) for seq, time_ms in enumerate(times_ms)]
    (part,), last_ms = split_batch(batch, 0)
    assert list(part.times_ms) == [T0, FAR, T0 + 1, T0 + 2, FAR + 1, T0 + 2000]
    assert last_ms == T0 + 2000
