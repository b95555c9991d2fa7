"""A batch as the envelopes of `POST /api/v1/ingest`; docs/ingest.md describes them.

Every record is in exactly one envelope, which has the number of its first record. So the same batch always
becomes the same envelopes, and a server that knows them takes none twice.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any

from runvitals.relay.batch import Batch, LogRow, Note, Samples
from runvitals.relay.packing import Packer

# log() calls with more different sets of names than this in one batch are sent as one table with gaps.
MAX_LOG_TABLES = 16
TRUE_TIME = "_time"
_NAN = float("nan")


class Table:
    """Rows of one set of keys, ready to be cut and packed. `steps` only of `log()` calls."""

    __slots__ = ("columns", "keys", "seqs", "steps", "times_ms")

    def __init__(
        self, keys: tuple[str, ...], seqs: list[int], times_ms: list[int], columns: list[array[float]]
    ) -> None:
        self.keys = keys
        self.seqs = seqs
        self.times_ms = times_ms
        self.columns = columns
        self.steps: array[float] | None = None

    @property
    def seq(self) -> int:
        return self.seqs[0]

    @property
    def every_ms(self) -> list[int]:
        return self.times_ms

    def rest(self) -> Table | None:
        """All rows but the first; None where there is but one."""
        if len(self.seqs) < 2:
            return None
        rest = Table(self.keys, self.seqs[1:], self.times_ms[1:], [column[1:] for column in self.columns])
        rest.steps = None if self.steps is None else self.steps[1:]
        return rest

    def fields(self, packer: Packer, schema: int | None) -> dict[str, Any]:
        """What an envelope says of the table; by the schema's number where the server gave it one."""
        body = packer.body(_bytes(array("q", self.times_ms)), [_bytes(column) for column in self.columns])
        fields: dict[str, Any] = {"seq": self.seq, "body": body}
        if schema is None:
            fields["keys"] = self.keys
        else:
            fields["schema"] = schema
        if self.steps is not None:
            fields["step"] = _bytes(self.steps)
        return fields


class Records:
    """Notes, which have no table."""

    __slots__ = ("notes",)

    def __init__(self, notes: list[Note]) -> None:
        self.notes = notes

    @property
    def seq(self) -> int:
        return self.notes[0].seq

    @property
    def every_ms(self) -> list[int]:
        return [note.time_ms for note in self.notes]

    @property
    def keys(self) -> tuple[str, ...]:
        return ()

    def rest(self) -> Records | None:
        return Records(self.notes[1:]) if len(self.notes) > 1 else None

    def fields(self, packer: Packer, schema: int | None) -> dict[str, Any]:
        return {"seq": self.seq, "records": [(note.seq, note.kind, note.value) for note in self.notes]}


Part = Table | Records


def parts(batch: Batch, last_log_ms: int) -> tuple[list[Part], int]:
    """The tables and records of a batch, and the time of its last `log()` row as it is sent.

    Args:
        last_log_ms: that of the batch before; rows are sent with times that ascend strictly, as a time names
            a row.
    """
    found: list[Part] = [_table(samples) for samples in batch.samples]
    logs, last_log_ms = _log_tables(batch.logs, last_log_ms)
    found += logs
    if batch.notes:
        found.append(Records(batch.notes))
    return found, last_log_ms


def _table(samples: Samples) -> Table:
    return Table(samples.keys, samples.seqs, samples.times_ms, samples.columns())


def _log_tables(rows: list[LogRow], last_ms: int) -> tuple[list[Table], int]:
    moved: list[tuple[LogRow, int, dict[str, float]]] = []
    for row in rows:
        last_ms = max(row.time_ms, last_ms + 1)
        moved.append((row, last_ms, row.numbers()))
    groups: dict[tuple[str, ...], list[tuple[LogRow, int, dict[str, float]]]] = {}
    for one in moved:
        groups.setdefault(tuple(one[2]), []).append(one)
    if len(groups) > MAX_LOG_TABLES:
        every = tuple(dict.fromkeys(key for keys in groups for key in keys))
        groups = {every: moved}
    return [_log_table(keys, members) for keys, members in groups.items() if keys], last_ms


def _log_table(keys: tuple[str, ...], members: list[tuple[LogRow, int, dict[str, float]]]) -> Table:
    times_ms = [time_ms for _, time_ms, _ in members]
    columns = [array("d", [values.get(key, _NAN) for _, _, values in members]) for key in keys]
    if any(row.time_ms != time_ms for row, time_ms, _ in members):
        keys = (*keys, TRUE_TIME)
        columns.append(array("d", [float(row.time_ms) for row, _, _ in members]))
    table = Table(keys, [row.seq for row, _, _ in members], times_ms, columns)
    table.steps = array("d", [_NAN if row.step is None else float(row.step) for row, _, _ in members])
    return table


def _bytes(numbers: array[Any]) -> bytes:
    """Little-endian."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()
