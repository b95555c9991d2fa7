"""The batch, which destinations receive: a range of records of one writer's journal, decoded."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, NamedTuple

from runvitals.journal.clock import RunClock
from runvitals.readers.journals.history import leaves, others_of

EVENT, LIFECYCLE, INFO, CONSOLE, MEDIA = "event", "lifecycle", "info", "console", "media"


class RunFacts:
    """The facts about a run so far, from all its writers on this host.

    Attributes:
        id: the run's id.
        project: its project.
        entity: the team or user that it belongs to; "" for the default of the key.
        run: name, group, job_type, tags, notes, command; keys that were not set are missing.
        config, summary, machine, settings: as the user and the monitor wrote them, merged key by key.
    """

    __slots__ = ("config", "entity", "id", "machine", "project", "run", "settings", "summary")

    def __init__(self, id: str, project: str = "default") -> None:
        self.id = id
        self.project = project
        self.entity = ""
        self.run: dict[str, Any] = {}
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.machine: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The display name of the run: its name, else its id."""
        return str(self.run.get("name") or self.run.get("default_name") or self.id)

    @property
    def tags(self) -> list[str]:
        """The user's tags of the run."""
        return [str(tag) for tag in self.run.get("tags") or ()]


class WriterFacts:
    """The process that wrote the records, as recorded in the writer's own files.

    Attributes:
        name: `monitor.<host>.<start>`, `train.<host>.<pid>.<start>` or `console.<host>.<pid>.<start>`.
        role: "monitor", "train", "console" or "media".
        host: the host's name.
        pid: process id on that host.
        rank, local_rank, world_size: of a training process within its job; None if it has none.
        interval_s: seconds between two samples of a monitor, None for other writers.
        boot_id: identifies the boot of the host; "" if unknown.
        started_ms: when the writer started, UTC.
        labels: labels the user set for this writer.
        clock: the clock its times were taken with, if the writer runs on this machine since its last boot.
    """

    __slots__ = (
        "boot_id",
        "clock",
        "host",
        "interval_s",
        "labels",
        "local_rank",
        "name",
        "pid",
        "rank",
        "role",
        "started_ms",
        "world_size",
    )

    def __init__(self, name: str, role: str = "", host: str = "") -> None:
        self.name = name
        self.role = role
        self.host = host
        self.pid: int | None = None
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.world_size: int | None = None
        self.interval_s: float | None = None
        self.boot_id = ""
        self.started_ms = 0
        self.labels: dict[str, str] = {}
        self.clock: RunClock | None = None

    def now_ms(self, now_ms: int) -> int:
        """Return the time on the writer's clock at our `now_ms`; they differ if ours was set since."""
        return now_ms if self.clock is None else now_ms - self.clock.ahead_ms()


class Moment(NamedTuple):
    """One sample: the values of some keys at one time (ms, UTC); NaN means no value."""

    seq: int
    time_ms: int
    keys: tuple[str, ...]
    values: tuple[float, ...]


class Samples:
    """Samples of one set of keys: a table with one row per sample.

    Attributes:
        keys: canonical keys (`cpu`, `gpu.0.powerWatts`, …), the columns.
        times_ms: UTC, one per row, in the order the samples were taken (not ascending if the clock was set
            back).
        seqs: the record number of each row in the journal.

    Example:
        >>> table.keys, table.times_ms, table.columns()[0].tolist()
        (('cpu', 'memory_percent'), [1700000000000, 1700000001000], [12.5, 13.0])
    """

    __slots__ = ("_rows", "keys", "seqs", "times_ms")

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self.seqs: list[int] = []
        self.times_ms: list[int] = []
        self._rows: list[bytes] = []

    def __len__(self) -> int:
        return len(self.times_ms)

    def add(self, seq: int, time_ms: int, packed: bytes) -> None:
        """Append a row: one little-endian float64 for each key."""
        self.seqs.append(seq)
        self.times_ms.append(time_ms)
        self._rows.append(packed)

    def columns(self) -> list[array[float]]:
        """Return the values, one `array('d')` per key; NaN means no value at that time.

        Takes 20 ns per value.
        """
        flat = array("d", b"".join(self._rows))
        if sys.byteorder == "big":
            flat.byteswap()
        width = len(self.keys)
        return [flat[i::width] for i in range(width)]

    def moments(self) -> Iterator[Moment]:
        """Yield the rows in order."""
        width = struct.Struct(f"<{len(self.keys)}d")
        for seq, time_ms, row in zip(self.seqs, self.times_ms, self._rows, strict=True):
            yield Moment(seq, time_ms, self.keys, width.unpack(row))

    def __iter__(self) -> Any:
        """Yield each key with its column."""
        return iter(zip(self.keys, self.columns(), strict=True))


def in_order(tables: Sequence[Samples]) -> Iterator[Moment]:
    """Return the rows of several tables of one writer, in the order they were taken."""
    return merge(*(table.moments() for table in tables), key=lambda moment: moment.seq)


class LogRow:
    """One `run.log()` call of a training process.

    Attributes:
        seq: the record number in the journal.
        time_ms: UTC.
        step: the user's step, else the number of the call; None in journals that record neither.
        data: the logged values by the user's names: numbers, and any other JSON values.
    """

    __slots__ = ("data", "seq", "step", "time_ms")

    def __init__(self, seq: int, time_ms: int, step: float | None, data: Mapping[str, Any]) -> None:
        self.seq = seq
        self.time_ms = time_ms
        self.step = step
        self.data = data

    def numbers(self) -> dict[str, float]:
        """Return the numeric values of `data`, including NaN and infinities; a bool counts as 0 or 1.

        Nested ones, such as the minimum of an array, have dotted names.

        Example:
            >>> LogRow(0, 0, 1, {"loss": 0.5, "train": {"acc": 1}, "note": "x"}).numbers()
            {'loss': 0.5, 'train.acc': 1.0}
        """
        data = self.data
        if any(isinstance(value, dict) for value in data.values()):
            data = dict(leaves(data))
        return {
            key: float(value)
            for key, value in data.items()
            if isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 1023)
        }

    def others(self) -> dict[str, Any]:
        """Return what charts cannot show as it is: texts, lists, booleans, null, integers above 2⁵³.

        Histograms of arrays are left out: they are media, too.

        Example:
            >>> LogRow(0, 0, 1, {"loss": 0.5, "note": "x", "train": {"best": True}}).others()
            {'note': 'x', 'train.best': True}
        """
        return others_of(self.data)


class Note:
    """Any other record of the journal: an event, a lifecycle record, facts or console output.

    Attributes:
        seq: the record number in the journal.
        kind: "event", "lifecycle", "info", "console" or "media".
        value: the record as docs/concepts/journal.md describes it, with "t". For "console":
            `{"t", "stream": 1 for stdout or 2 for stderr, "text"}`.
    """

    __slots__ = ("kind", "seq", "value")

    def __init__(self, seq: int, kind: str, value: Mapping[str, Any]) -> None:
        self.seq = seq
        self.kind = kind
        self.value = value

    @property
    def time_ms(self) -> int:
        """When the record was written, ms UTC; 0 if it has no time."""
        return int(self.value.get("t", 0))


class Batch:
    """A range of records of one writer's journal.

    Attributes:
        run: the facts about the run, including the "info" notes of this batch.
        writer: which process wrote the records.
        first_seq, last_seq: the first and last record number of the range. (run.id, writer.name, first_seq,
            last_seq) is the batch's idempotency key. last_seq < first_seq: the batch is empty, a heartbeat
            (see `Destination.heartbeat_s`).
        samples: tables of samples, one per set of keys, in the order of their first rows.
        logs: `run.log()` calls, in order.
        notes: events, lifecycle, info and console records, in order.
        repeated: the batch may have been delivered before (the response was lost, or the relay was killed in
            between). It then covers exactly the same range.
    """

    __slots__ = ("first_seq", "last_seq", "logs", "notes", "repeated", "run", "samples", "writer")

    def __init__(self, run: RunFacts, writer: WriterFacts, first_seq: int, last_seq: int) -> None:
        self.run = run
        self.writer = writer
        self.first_seq = first_seq
        self.last_seq = last_seq
        self.samples: list[Samples] = []
        self.logs: list[LogRow] = []
        self.notes: list[Note] = []
        self.repeated = False

    @property
    def empty(self) -> bool:
        """The batch holds no records: a heartbeat."""
        return not (self.samples or self.logs or self.notes)

    def moments(self) -> Iterator[Moment]:
        """Return all samples in the order they were taken, across all sets of keys.

        Use this for computations that depend on the previous sample (rates, ascending steps): the tables
        overlap in time, because slowly changing metrics are not in every sample.
        """
        return in_order(self.samples)

    @property
    def rows(self) -> int:
        """The number of samples."""
        return sum(map(len, self.samples))

    @property
    def points(self) -> int:
        """The number of values in samples and log rows."""
        return sum(len(table) * len(table.keys) for table in self.samples) + sum(
            len(row.data) for row in self.logs
        )

    def notes_of(self, kind: str) -> list[Note]:
        """Return the records of a kind, in the order in which they were written."""
        return [note for note in self.notes if note.kind == kind]
