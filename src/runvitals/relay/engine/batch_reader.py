"""Reads a writer's journal into batches: decodes records and decides when a batch is ready to be sent."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

from runvitals.journal import frames, paths
from runvitals.journal.clock import RunClock, boot_id, writer_clock
from runvitals.journal.reader import WriterTail
from runvitals.journal.records import CONSOLE_HEAD, Record
from runvitals.relay.batch import (
    CONSOLE,
    EVENT,
    INFO,
    LIFECYCLE,
    MEDIA,
    Batch,
    LogRow,
    Note,
    RunFacts,
    Samples,
    WriterFacts,
)
from runvitals.relay.engine.cursor import Position

MAX_BATCH_BYTES = 512 * 1024
MAX_BATCH_RECORDS = 5_000
_KINDS = {frames.EVENT: EVENT, frames.LIFECYCLE: LIFECYCLE, frames.INFO: INFO, frames.MEDIA: MEDIA}
_SECTIONS = ("run", "config", "summary", "machine", "settings")
_WRITER_FIELDS = (
    "role",
    "host",
    "pid",
    "rank",
    "local_rank",
    "world_size",
    "interval_s",
    "boot_id",
    "labels",
    "project",
    "entity",
)


class BatchReader:
    """Reads one writer of a run from its delivery position.

    Args:
        folder: the run's folder.
        writer: the writer's name.
        position: the delivery position. A range in flight is read first, unchanged.
        run: the facts about the run; INFO records are merged into it as they are read.

    Attributes:
        batch: the records read and not delivered yet; None if there are none.
        since_s: when the first record of `batch` was read, on the caller's clock.
        urgent: `batch` holds an event or a lifecycle record.
        full: `batch` has reached its size limit.
    """

    __slots__ = (
        "_bytes",
        "_decoders",
        "_next",
        "_records",
        "_tables",
        "_tail",
        "batch",
        "facts",
        "full",
        "position",
        "run",
        "since_s",
        "urgent",
        "writer",
    )

    def __init__(self, folder: str, writer: str, position: Position, run: RunFacts) -> None:
        self.writer = writer
        self.position = position
        self.run = run
        self.facts = WriterFacts(writer, *paths.role_and_host(writer))
        if position.about:
            self._set_facts(position.about)
        self.batch: Batch | None = None
        self.since_s = 0.0
        self.urgent = self.full = False
        self._tail = WriterTail(folder, writer, position.next_seq)
        self._next: Record | None = None
        self._tables: dict[tuple[str, ...], Samples] = {}
        self._bytes = self._records = 0
        self._decoders = {stream: _decoder(position.carry.get(str(stream), "")) for stream in (1, 2)}

    @property
    def missing(self) -> int:
        """Number of records that are missing or damaged."""
        return self._tail.missing

    @property
    def bytes(self) -> int:
        """Size of what `batch` holds."""
        return self._bytes

    def read(self, segments: Sequence[int], now_s: float) -> None:
        """Add new records until the batch is full; of a range in flight, all of it and nothing more."""
        if self.full:
            return
        if self.position.flight is not None and self.batch is None:
            self._reread(segments, now_s, self.position.flight)
            return
        if self._next is not None:
            record, self._next = self._next, None
            self._add(record, now_s)
        for record in self._tail.poll(segments):
            self._add(record, now_s)
            if self._bytes >= MAX_BATCH_BYTES or self._records >= MAX_BATCH_RECORDS:
                self.full = True
                break

    def _reread(self, segments: Sequence[int], now_s: float, flight: tuple[int, int]) -> None:
        """Read the range that was being sent when the previous process died: exactly those records."""
        first, last = flight
        for record in self._tail.poll(segments):
            if record.seq > last:
                self._next = record
                break
            self._add(record, now_s)
            if record.seq == last:
                break
        if self.batch is None:  # the file was deleted meanwhile
            self.batch, self.since_s = Batch(self.run, self.facts, first, last), now_s
        self.batch.first_seq, self.batch.last_seq = first, last
        self.batch.repeated = self.full = True

    def start_sending(self) -> Batch:
        """Mark the batch as being sent: its range is fixed from now on."""
        assert self.batch is not None
        self.full = True
        self.position.flight = (self.batch.first_seq, self.batch.last_seq)
        return self.batch

    def finish_batch(self) -> None:
        """Advance past the batch: it was delivered, or never will be."""
        assert self.batch is not None
        self.position.next_seq = self.batch.last_seq + 1
        self.position.flight = None
        self.position.carry = {
            str(stream): incomplete.hex()
            for stream, decoder in self._decoders.items()
            if (incomplete := decoder.getstate()[0])
        }
        self.batch = None
        self.urgent = self.full = False
        self._tables = {}
        self._bytes = self._records = 0

    def _add(self, record: Record, now_s: float) -> None:
        batch = self.batch
        if batch is None:
            batch = self.batch = Batch(self.run, self.facts, record.seq, record.seq)
            self.since_s = now_s
        batch.last_seq = record.seq
        self._bytes += record.size
        self._records += 1
        if record.type == frames.SAMPLE:
            self._sample(batch, record)
        elif record.type == frames.HISTORY:
            self._log(batch, record)
        elif record.type == frames.CONSOLE:
            self._console(batch, record)
        elif record.type == frames.START:
            self._start(record.value)
        elif record.type in _KINDS:
            self._note(batch, record)

    def _sample(self, batch: Batch, record: Record) -> None:
        keys = tuple(record.keys)
        table = self._tables.get(keys)
        if table is None:
            table = self._tables[keys] = Samples(keys)
            batch.samples.append(table)
        table.add(record.seq, record.time_ms, record.packed)

    def _log(self, batch: Batch, record: Record) -> None:
        data, step = record.value.get("data"), record.value.get("step")
        if isinstance(data, dict):
            number = step if isinstance(step, (int, float)) and not isinstance(step, bool) else None
            batch.logs.append(LogRow(record.seq, record.time_ms, number, data))

    def _console(self, batch: Batch, record: Record) -> None:
        stream, _ = CONSOLE_HEAD.unpack_from(record.value)
        decoder = self._decoders.get(stream)
        if decoder is None:
            return
        text = decoder.decode(record.value[CONSOLE_HEAD.size :])
        if text:
            value = {"t": record.time_ms, "stream": stream, "text": text}
            batch.notes.append(Note(record.seq, CONSOLE, value))

    def _note(self, batch: Batch, record: Record) -> None:
        kind = _KINDS[record.type]
        if kind == INFO and "logged" in record.value:
            return  # a summary of the log rows, which are delivered themselves
        batch.notes.append(Note(record.seq, kind, record.value))
        if kind == INFO:
            add_info(self.run, record.value)
        elif kind != MEDIA:
            self.urgent = True

    def _start(self, value: dict[str, Any]) -> None:
        about = {key: value[key] for key in _WRITER_FIELDS if value.get(key) is not None}
        clock = writer_clock(value, boot_id())
        if clock is not None:
            about["clock_ms"] = clock.anchor_ms
        about["started_ms"] = self.position.about.get("started_ms") or int(value.get("t") or 0)
        self.position.about = about
        self._set_facts(about)

    def _set_facts(self, about: dict[str, Any]) -> None:
        facts = self.facts
        facts.role = str(about.get("role", facts.role))
        facts.host = str(about.get("host", facts.host))
        facts.pid, facts.rank = about.get("pid"), about.get("rank")
        facts.local_rank, facts.world_size = about.get("local_rank"), about.get("world_size")
        facts.interval_s = about.get("interval_s")
        facts.boot_id = str(about.get("boot_id", ""))
        anchor_ms = about.get("clock_ms")
        is_current_boot = isinstance(anchor_ms, int) and facts.boot_id == boot_id()
        facts.clock = RunClock(anchor_ms) if is_current_boot else None
        facts.started_ms = int(about.get("started_ms", 0))
        facts.labels = dict(about.get("labels") or {})
        self.run.project = str(about.get("project") or self.run.project)
        self.run.entity = str(about.get("entity") or self.run.entity)


def add_info(run: RunFacts, value: dict[str, Any]) -> None:
    """Merge an INFO record into the facts about a run."""
    for section, names in (value.get("removed") or {}).items():
        if section in _SECTIONS:
            for name in names:
                getattr(run, section).pop(name, None)
    for section in _SECTIONS:
        content = value.get(section)
        if isinstance(content, dict):
            getattr(run, section).update(content)


def _decoder(carry: str) -> codecs.IncrementalDecoder:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(bytes.fromhex(carry))
    return decoder
