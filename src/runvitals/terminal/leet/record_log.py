"""The records of a run, one after the other, from its journal or a `.wandb` file."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any, NamedTuple, Protocol

from runvitals.base.protobuf import Malformed, fields
from runvitals.base.terminal_text import inert
from runvitals.journal import frames
from runvitals.journal.reader import Tail
from runvitals.journal.records import Record
from runvitals.model.run_json import finite
from runvitals.readers.journals import console
from runvitals.readers.wandb_files.records import decode
from runvitals.readers.wandb_files.transaction_log import TransactionLog
from runvitals.terminal.leet.shared_use import SharedUse

KEPT_BYTES = 128 * 1024 * 1024
"""Most bytes of records in memory; beyond it the oldest are dropped."""
_OVERHEAD_BYTES = 300
_BRIEF_LETTERS = 400
_KINDS = {
    frames.START: "start",
    frames.SAMPLE: "sample",
    frames.SCHEMA: "schema",
    frames.HISTORY: "history",
    frames.EVENT: "event",
    frames.LIFECYCLE: "lifecycle",
    frames.INFO: "info",
    frames.CONSOLE: "console",
    frames.MEDIA: "media",
}


class LoggedRecord(NamedTuple):
    """A record: its number, time (0: none), kind, and the writer of a journal. `source` has its content."""

    number: int
    time_ms: int
    kind: str
    writer: str
    size: int
    source: Any

    @property
    def value(self) -> Any:
        """The content, for JSON."""
        source = self.source
        if not isinstance(source, Record):
            return source
        if source.type == frames.SAMPLE:
            return dict(zip(source.keys, source.values, strict=True))
        if source.type == frames.CONSOLE:
            piece = console.parse(source.value, source.writer)
            return {"stream": piece.stream, "text": piece.text}
        return source.value

    @property
    def brief(self) -> str:
        """The start of the content, in one line that is safe for a terminal."""
        value = self.value
        text = value if isinstance(value, str) else json.dumps(finite(value), ensure_ascii=False, default=str)
        return inert(text[:_BRIEF_LETTERS])

    @property
    def detail(self) -> list[str]:
        """The whole content, in lines that are safe for a terminal."""
        text = json.dumps(finite(self.value), ensure_ascii=False, indent=2, default=str)
        return [inert(line) for line in text.split("\n")]

    def as_json(self) -> str:
        """Return the record in one line of JSON."""
        about: dict[str, Any] = {"number": self.number, "kind": self.kind}
        about |= {"writer": self.writer} if self.writer else {}
        about |= {"time_ms": self.time_ms} if self.time_ms else {}
        return json.dumps({**about, "value": finite(self.value)}, default=str, allow_nan=False)


class RecordReader(Protocol):
    """Reads records. `poll` yields those that were written since the last call."""

    def poll(self) -> Iterator[LoggedRecord]:
        """Yield the records that were written since the last call."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


class JournalRecords:
    """The records of a run's folder, writer by writer.

    Args:
        folder: the run's folder.
    """

    def __init__(self, folder: str) -> None:
        self._tail = Tail(folder)

    def poll(self) -> Iterator[LoggedRecord]:
        """Yield new records."""
        for record in self._tail.poll():
            kind = _KINDS.get(record.type, str(record.type))
            yield LoggedRecord(record.seq, record.time_ms, kind, record.writer, record.size, record)

    def close(self) -> None:
        """Do nothing: no file is kept open."""


class WandbRecords:
    """The records of a `.wandb` file.

    Raises:
        ValueError: not a `.wandb` file.
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = 0
        self._file = open(path, "rb")  # noqa: SIM115 - until `close`
        self._log = TransactionLog(self._file, path)

    def poll(self) -> Iterator[LoggedRecord]:
        """Yield new records. Of those that runvitals does not read, the number of their type."""
        for payload in self._log.records():
            number, self._count = self._count, self._count + 1
            try:
                record = decode(payload)
                kind = _type_of(payload) if record is None else type(record).__name__
            except Malformed as error:
                yield LoggedRecord(number, 0, "damaged", "", len(payload), str(error))
                continue
            time_ms = int(getattr(record, "time_ms", 0) or getattr(record, "started_ms", 0))
            value = None if record is None else asdict(record)
            yield LoggedRecord(number, time_ms, kind, "", len(payload), value)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _type_of(payload: bytes) -> str:
    numbers = [number for number, _, value in fields(payload) if isinstance(value, bytes)]
    return f"type {numbers[0]}" if numbers else "empty"


class RecordLog:
    """The records read so far: the newest, up to 128 MB.

    Args:
        reader: reads them.
    """

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._use = SharedUse(reader.close)
        self._size = 0
        self.records: deque[LoggedRecord] = deque()
        self.left_out = 0

    def read(self) -> list[LoggedRecord]:
        """Read new records, perhaps in a thread, or raise OSError."""
        with self._use():
            return list(self._reader.poll())

    def close(self) -> None:
        """Close what they are read from."""
        self._use.close()

    def add(self, records: Iterable[LoggedRecord]) -> None:
        """Add records, and drop the oldest beyond the limit."""
        for record in records:
            self.records.append(record)
            self._size += record.size + _OVERHEAD_BYTES
            while self._size > KEPT_BYTES and len(self.records) > 1:
                self._size -= self.records.popleft().size + _OVERHEAD_BYTES
                self.left_out += 1


def moment_of(record: LoggedRecord) -> str:
    """Return the time of a record in UTC, with milliseconds; "" without one."""
    if not record.time_ms:
        return ""
    try:
        at = datetime.fromtimestamp(record.time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{record.time_ms} ms"
    return f"{at:%Y-%m-%d %H:%M:%S}.{record.time_ms % 1000:03}"
