"""Console output: the newest of each run, up to a limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, select, tuple_, update

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, add_rows, among
from runvitals.server.database.tables.runs import console, console_kept, writer
from runvitals.server.database.text import check_integers
from runvitals.server.runs.storage.run_locks import lock_known_runs

KEPT_BYTES = 4 << 20
"""Bytes of output kept per run, as UTF-8. Beyond this, the oldest quarter is deleted; the journal keeps
all."""
_KEPT_AFTER_DELETION = KEPT_BYTES * 3 // 4
STREAMS = (1, 2)
"""stdout and stderr."""
_PIECES_PER_QUERY = 400


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """A piece of console output, which may start and end within a line.

    Args:
        writer_id, seq: the writer and the number of its record: (writer, seq) is stored once.
        time_ms: ms UTC, by the writer's clock.
        stream: 1 stdout, 2 stderr.
    """

    run_id: int
    writer_id: int
    seq: int
    time_ms: int
    stream: int
    text: str

    def check(self) -> None:
        """Raise ValueError for an invalid number."""
        check_integers("console output", seq=self.seq, time_ms=self.time_ms)
        if self.stream not in STREAMS:
            raise ValueError(f"invalid stream {self.stream}; expected 1 (stdout) or 2 (stderr)")


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """The end of a run's output, in order of time. `dropped_bytes`: size of older output that was deleted."""

    pieces: list[ConsoleLine]
    dropped_bytes: int


class ConsoleTable(StoredTable):
    r"""The table of console output.

    Example:
        >>> metadata_store.console.add([ConsoleLine(run_id, writer_id, 17, now_ms, 1, "epoch 1\n")])
        >>> [piece.text for piece in metadata_store.console.tail(run_id).pieces]
        ['epoch 1\\n']
    """

    def add(self, pieces: Sequence[ConsoleLine]) -> None:
        """Store new lines, all or none, durably; raise ValueError for an invalid number, or UnknownRun."""
        for piece in pieces:
            piece.check()
        if pieces:
            self._database.write(lambda connection: _add(connection, pieces))

    def rewrite(self, run_id: int, writer_name: str, pieces: Sequence[ConsoleLine]) -> None:
        """Change the text of pieces that are stored, such as lines of a progress bar. Durable.

        Args:
            pieces: of this writer, by `seq`; those that are not stored any more are ignored.

        Raises:
            UnknownRun: the run does not exist.
        """
        by_seq = {piece.seq: piece for piece in pieces}
        if by_seq:
            self._database.write(lambda connection: _rewrite(connection, run_id, writer_name, by_seq))

    def tail(self, run_id: int, max_bytes: int = KEPT_BYTES) -> ConsolePage:
        """Return the newest output of a run: at most `max_bytes`, but at least one piece if there is any."""
        with self._database.read() as connection:
            statement = select(console_kept.c.dropped_bytes).where(console_kept.c.run_id == run_id)
            dropped_bytes = connection.execute(statement).scalar() or 0
            newest = (
                select(console)
                .where(console.c.run_id == run_id)
                .order_by(console.c.time_ms.desc(), console.c.id.desc())
            )
            pieces: list[ConsoleLine] = []
            size = 0
            for row in connection.execution_options(yield_per=256).execute(newest):
                size += row.size
                if size > max_bytes and pieces:
                    break
                pieces.append(
                    ConsoleLine(row.run_id, row.writer_id, row.seq, row.time_ms, row.stream, row.text)
                )
        return ConsolePage(pieces[::-1], dropped_bytes)


def _add(connection: Connection, pieces: Sequence[ConsoleLine]) -> None:
    lock_known_runs(connection, {piece.run_id for piece in pieces})
    stored_pieces = _find_stored(connection, pieces)
    # Keyed by identity: a request may contain the same piece twice.
    rows = {
        (piece.writer_id, piece.seq): _row(piece)
        for piece in pieces
        if (piece.writer_id, piece.seq) not in stored_pieces
    }
    add_rows(connection, console, list(rows.values()))
    added: dict[int, int] = defaultdict(int)
    for row in rows.values():
        added[row["run_id"]] += row["size"]
    for run_id, size in added.items():
        _count(connection, run_id, size)


def _rewrite(
    connection: Connection, run_id: int, writer_name: str, pieces: Mapping[int, ConsoleLine]
) -> None:
    lock_known_runs(connection, {run_id})
    of_writer = select(writer.c.id).where(writer.c.run_id == run_id, writer.c.name == writer_name)
    grown = 0
    numbers = sorted(pieces)
    for first in range(0, len(numbers), _PIECES_PER_QUERY):
        part = numbers[first : first + _PIECES_PER_QUERY]
        mine = console.c.writer_id == of_writer.scalar_subquery(), console.c.seq.in_(part)
        statement = select(console.c.id, console.c.seq, console.c.size, console.c.text).where(*mine)
        for row in connection.execute(statement).all():
            text = plain_text(pieces[row.seq].text)
            if text == row.text:
                continue
            values = {"text": text, "size": len(text.encode("utf-8")), "stream": pieces[row.seq].stream}
            connection.execute(update(console).where(console.c.id == row.id).values(values))
            grown += values["size"] - row.size
    if grown:
        _count(connection, run_id, grown)


def _find_stored(connection: Connection, pieces: Sequence[ConsoleLine]) -> set[tuple[int, int]]:
    names = [(piece.writer_id, piece.seq) for piece in pieces]
    present: set[tuple[int, int]] = set()
    for first in range(0, len(names), _PIECES_PER_QUERY):
        is_known = tuple_(console.c.writer_id, console.c.seq).in_(names[first : first + _PIECES_PER_QUERY])
        present.update(
            map(tuple, connection.execute(select(console.c.writer_id, console.c.seq).where(is_known)))
        )
    return present


def _row(piece: ConsoleLine) -> dict[str, Any]:
    text = plain_text(piece.text)
    return {**asdict(piece), "text": text, "size": len(text.encode("utf-8"))}


def _count(connection: Connection, run_id: int, added: int) -> None:
    """Update the size of a run's output, and delete the oldest beyond the limit."""
    add_rows(connection, console_kept, [{"run_id": run_id, "bytes": 0, "dropped_bytes": 0}])
    mine = console_kept.c.run_id == run_id
    size = connection.execute(select(console_kept.c.bytes).where(mine)).scalar_one() + added
    dropped = _drop(connection, run_id, size - _KEPT_AFTER_DELETION) if size > KEPT_BYTES else 0
    values = {"bytes": size - dropped, "dropped_bytes": console_kept.c.dropped_bytes + dropped}
    connection.execute(update(console_kept).where(mine).values(values))


def _drop(connection: Connection, run_id: int, most: int) -> int:
    """Delete the oldest pieces of a run, at most `most` bytes; returns their size."""
    oldest = (
        select(console.c.id, console.c.size)
        .where(console.c.run_id == run_id)
        .order_by(console.c.time_ms, console.c.id)
    )
    dropped = 0
    gone: list[int] = []
    for number, size in connection.execute(oldest):
        if dropped + size > most:
            break
        dropped += size
        gone.append(number)
    _delete(connection, gone)
    return dropped


def _delete(connection: Connection, numbers: Iterable[int]) -> None:
    connection.execute(delete(console).where(among(connection, console.c.id, numbers)))
