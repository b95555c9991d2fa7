"""The aggregates of logged metrics, and when to write them to the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runvitals.base.json_codec import dumps
from runvitals.model.summary import WriterSummary, flat

# Write the aggregates after this many logged bytes. Run lists read only the last 64 KiB of a file.
_EVERY_BYTES = 48 * 1024
# Also wait for at least this many times the size of the last record, so that these records stay below 5 % of
# what is written. A record takes at most `_RECORD_BYTES`.
_SHARE = 20
_RECORD_BYTES = 32 * 1024


class LoggedSummary:
    """Aggregates the rows of `log()`.

    Example:
        >>> logged = LoggedSummary()
        >>> logged.add({"loss": 0.5}, 1_700_000_000_000, 60)
        {'loss': 0.5}
    """

    __slots__ = ("_due_at_bytes", "_pending_bytes", "_segment", "_summary")

    def __init__(self) -> None:
        self._summary = WriterSummary()
        self._pending_bytes = 0  # logged since the aggregates were last written
        self._due_at_bytes = _EVERY_BYTES
        self._segment = 0

    def define(self, definition: Mapping[str, Any]) -> None:
        """Choose how metrics are aggregated; see `Run.define_metric`."""
        self._summary.rules.define(definition)

    def add(self, row: Mapping[str, Any], now_ms: int, size: int) -> Mapping[str, Any]:
        """Add a row whose record has `size` bytes; return the aggregates of its metrics."""
        row = flat(row)
        self._summary.add(row, now_ms)
        self._pending_bytes += size
        return self._summary.values_of(row) if self._summary.rules else row

    def is_due(self, segment: int) -> bool:
        """Return whether to write the aggregates now: for a new journal segment, or after many rows."""
        return segment != self._segment or self._pending_bytes > self._due_at_bytes

    def record(self, now_ms: int) -> bytes | None:
        """Return the record to write; None if nothing was logged since the last one."""
        if not self._pending_bytes:
            return None
        return dumps({"t": now_ms, "logged": self._summary.state(_RECORD_BYTES)})

    def note_written(self, size: int, segment: int) -> None:
        """Note the size and segment of the record that was written."""
        self._segment = segment
        self._pending_bytes = 0
        self._due_at_bytes = max(_EVERY_BYTES, _SHARE * size)
