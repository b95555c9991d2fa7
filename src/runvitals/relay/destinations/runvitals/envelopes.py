"""Encodes a batch as envelopes for `POST /api/v1/ingest`, as docs/reference/ingest.md describes them.

Every record is in exactly one envelope, identified by the number of its first record. The same batch always
yields the same envelopes, so the server can ignore those it has already stored.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from runvitals.model.batch_format import GAP
from runvitals.model.limits import AHEAD_MS, ENVELOPE_RECORDS, OLDEST_SENT_MS, TIME_MS
from runvitals.model.media import VALUE
from runvitals.model.names import TRUE_TIME
from runvitals.relay.batch import MEDIA, Batch, LogRow, Note, Samples
from runvitals.relay.destinations.runvitals.compression import BodyCompressor

# log() calls with more distinct sets of names than this in one batch are merged into tables with gaps.
MAX_LOG_TABLES = 16
MAX_GAPPED_VALUES = 65_536
_RECORDS_OF_A_ROW = 1 << 16
_TimedRow = tuple[LogRow, int, dict[str, float]]  # a row, the time it is sent with, its numbers


class EnvelopeTable:
    """Rows with the same keys, to be split and encoded.

    `steps`, and `others` by the number of a row, are only set for `log()` calls.
    """

    __slots__ = ("columns", "keys", "others", "seqs", "steps", "times_ms")

    def __init__(
        self, keys: tuple[str, ...], seqs: list[int], times_ms: list[int], columns: list[array[float]]
    ) -> None:
        self.keys = keys
        self.seqs = seqs
        self.times_ms = times_ms
        self.columns = columns
        self.steps: array[float] | None = None
        self.others: dict[int, list[Note]] = {}

    @property
    def seq(self) -> int:
        """The journal's number of the first row, which is that of the envelope."""
        return self.seqs[0]

    def select(self, indexes: Sequence[int]) -> EnvelopeTable:
        """Return the rows at these indexes."""
        table = EnvelopeTable(
            self.keys,
            [self.seqs[i] for i in indexes],
            [self.times_ms[i] for i in indexes],
            [array("d", [column[i] for i in indexes]) for column in self.columns],
        )
        table.steps = None if self.steps is None else array("d", [self.steps[i] for i in indexes])
        table.others = {seq: self.others[seq] for seq in table.seqs if seq in self.others}
        return table

    def content(self) -> dict[str, Any]:
        """Return the content of the first row."""
        row = zip(self.keys, (column[0] for column in self.columns), strict=True)
        values = {key: value for key, value in row if value == value}
        return {"values": values} if self.steps is None else {"step": self.steps[0], "data": values}

    def fields(self, compressor: BodyCompressor, schema: int | None) -> dict[str, Any]:
        """Return the fields of the table's envelope: the server's number of the schema, or else the keys."""
        body = compressor.body(_bytes(array("q", self.times_ms)), [_bytes(column) for column in self.columns])
        fields: dict[str, Any] = {"seq": self.seq, "body": body}
        if schema is None:
            fields["keys"] = self.keys
        else:
            fields["schema"] = schema
        if self.steps is not None:
            fields["step"] = _bytes(self.steps)
        if self.others:
            fields["records"] = [_record(note) for notes in self.others.values() for note in notes]
        return fields


class _OtherValue(Note):
    """A text and so on of a row of `log()`, as a record. `number`: its own; `seq` is that of the row."""

    __slots__ = ("number",)

    def __init__(self, row: LogRow, index: int, key: str, value: object) -> None:
        about = {"t": row.time_ms, "step": _step(row), "key": key, "kind": VALUE, "items": [{"value": value}]}
        super().__init__(row.seq, MEDIA, about)
        self.number = row.seq * _RECORDS_OF_A_ROW + index


class EnvelopeRecords:
    """Notes, which are not tabular."""

    __slots__ = ("notes",)

    def __init__(self, notes: list[Note]) -> None:
        self.notes = notes

    @property
    def seq(self) -> int:
        """The journal's number of the first record, which is that of the envelope."""
        return self.notes[0].seq

    @property
    def times_ms(self) -> list[int]:
        """The times of the records, ms UTC."""
        return [note.time_ms for note in self.notes]

    @property
    def keys(self) -> tuple[str, ...]:
        """Empty: records have no columns."""
        return ()

    def select(self, indexes: Sequence[int]) -> EnvelopeRecords:
        """Return the notes at these indexes."""
        return EnvelopeRecords([self.notes[i] for i in indexes])

    def content(self) -> dict[str, Any]:
        """Return the content of the first note."""
        return {"kind": self.notes[0].kind, **self.notes[0].value}

    def fields(self, compressor: BodyCompressor, schema: int | None) -> dict[str, Any]:
        """Return the fields of the envelope; neither argument matters to records."""
        return {"seq": self.seq, "records": [_record(note) for note in self.notes]}


Part = EnvelopeTable | EnvelopeRecords


def split_batch(batch: Batch, last_log_ms: int) -> tuple[list[Part], int]:
    """Split a batch into tables and records; also returns the time its last `log()` row is sent with.

    Args:
        last_log_ms: the same time of the previous batch. Rows are sent with strictly ascending times, because
            the time identifies a row.
    """
    parts: list[Part] = [_table(samples) for samples in batch.samples]
    logs, last_log_ms = _log_tables(batch.logs, last_log_ms)
    parts += logs
    with_numbers = {seq for part in logs for seq in part.seqs}
    # The rest of rows with numbers is in the envelopes of these: no two of a writer have the same number.
    alone = [note for row in batch.logs if row.seq not in with_numbers for note in _others(row)]
    notes = sorted([*batch.notes, *alone], key=lambda note: note.seq) if alone else batch.notes
    if notes:
        parts.append(EnvelopeRecords(notes))
    return parts, last_log_ms


def _others(row: LogRow) -> list[Note]:
    """Return the texts and so on of a row as records, which the server finds by its step."""
    others = enumerate(islice(row.others().items(), ENVELOPE_RECORDS))
    return [_OtherValue(row, index, key, value) for index, (key, value) in others]


def _step(row: LogRow) -> float:
    """Return the step of a row: without one, its record number, which also ascends."""
    return float(row.seq if row.step is None else row.step)


def _record(note: Note) -> tuple[int, str, Any]:
    return note.number if isinstance(note, _OtherValue) else note.seq, note.kind, note.value


def split_in_half(part: Part) -> tuple[Part, Part]:
    """Split a table or records of several rows in the middle."""
    middle = len(part.times_ms) // 2
    return part.select(range(middle)), part.select(range(middle, len(part.times_ms)))


def _table(samples: Samples) -> EnvelopeTable:
    return EnvelopeTable(samples.keys, samples.seqs, samples.times_ms, samples.columns())


def _log_tables(rows: list[LogRow], last_ms: int) -> tuple[list[EnvelopeTable], int]:
    timed: list[_TimedRow] = []
    ahead_ms = 0
    for row, earliest_ms in zip(rows, _earliest_after(rows), strict=True):
        if row.time_ms > earliest_ms + AHEAD_MS:  # a wrong time must not shift the rows after it
            ahead_ms = max(row.time_ms, ahead_ms + 1)
            timed.append((row, ahead_ms, row.numbers()))
            continue
        last_ms = max(row.time_ms, last_ms + 1)
        timed.append((row, last_ms, row.numbers()))
    groups: dict[tuple[str, ...], list[_TimedRow]] = {}
    for timed_row in timed:
        groups.setdefault(tuple(timed_row[2]), []).append(timed_row)
    groups.pop((), None)
    if len(groups) > MAX_LOG_TABLES:
        return [_log_table(keys, members) for keys, members in _merge(groups)], last_ms
    return [_log_table(keys, members) for keys, members in groups.items()], last_ms


def _earliest_after(rows: list[LogRow]) -> list[int]:
    """Return, for each row, the earliest time among it and later rows that the server may accept."""
    times_ms: list[int] = []
    earliest_ms = TIME_MS
    for row in reversed(rows):
        if row.time_ms >= OLDEST_SENT_MS:
            earliest_ms = min(earliest_ms, row.time_ms)
        times_ms.append(earliest_ms)
    return times_ms[::-1]


def _merge(
    groups: dict[tuple[str, ...], list[_TimedRow]],
) -> Iterator[tuple[tuple[str, ...], list[_TimedRow]]]:
    """Merge groups with different names as long as the resulting table is small."""
    keys: dict[str, None] = {}
    rows: list[_TimedRow] = []
    for names, members in groups.items():
        both = {**keys, **dict.fromkeys(names)}
        if rows and len(both) * (len(rows) + len(members)) > MAX_GAPPED_VALUES:
            yield tuple(keys), sorted(rows, key=_seq)
            both, rows = dict.fromkeys(names), []
        keys = both
        rows += members
    yield tuple(keys), sorted(rows, key=_seq)


def _seq(row: _TimedRow) -> int:
    return row[0].seq


def _log_table(keys: tuple[str, ...], members: list[_TimedRow]) -> EnvelopeTable:
    times_ms = [time_ms for _, time_ms, _ in members]
    columns = [array("d", [values.get(key, GAP) for _, _, values in members]) for key in keys]
    if any(row.time_ms != time_ms for row, time_ms, _ in members):
        keys = (*keys, TRUE_TIME)
        columns.append(array("d", [float(row.time_ms) for row, _, _ in members]))
    table = EnvelopeTable(keys, [row.seq for row, _, _ in members], times_ms, columns)
    table.steps = array("d", [_step(row) for row, _, _ in members])
    table.others = {row.seq: notes for row, _, _ in members if (notes := _others(row))}
    return table


def _bytes(numbers: array[Any]) -> bytes:
    """Return an array as little-endian bytes."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()
