"""What a destination gets: a stretch of one writer's journal, decoded."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, NamedTuple

from runvitals.journal.clock import Clock

EVENT, LIFECYCLE, INFO, CONSOLE = "event", "lifecycle", "info", "console"


class RunFacts:
    """What is known of a run by now, from all its writers on this host.

    Attributes:
        id: the run's id.
        project: its project.
        run: name, group, job_type, tags, notes, command; keys that nobody set are missing.
        config, summary, machine, settings: as the user and the monitor wrote them, merged key by key.
    """

    __slots__ = ("config", "id", "machine", "project", "run", "settings", "summary")

    def __init__(self, id: str, project: str = "default") -> None:
        self.id = id
        self.project = project
        self.run: dict[str, Any] = {}
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.machine: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """What people call the run: its name, else its id."""
        return str(self.run.get("name") or self.run.get("default_name") or self.id)

    @property
    def tags(self) -> list[str]:
        return [str(tag) for tag in self.run.get("tags") or ()]


class WriterFacts:
    """Who wrote the records, as the writer's own files say.

    Attributes:
        name: `monitor.<host>.<start>`, `train.<host>.<pid>.<start>` or `console.<host>.<pid>.<start>`.
        role: "monitor", "train" or "console".
        host: the host's name.
        pid: process id on that host.
        rank, local_rank, world_size: of a training process among those of its job; None where it has none.
        interval_s: seconds between two samples of a monitor, else None.
        boot_id: which boot of the host, "" where unknown.
        started_ms: when the writer began, UTC.
        labels: the user's labels of this writer.
        clock: that of its times, where it is one of this machine since its last start.
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
        self.clock: Clock | None = None

    def now_ms(self, now_ms: int) -> int:
        """What its clock shows at `now_ms` of ours: another time where ours was set since its run began."""
        return now_ms if self.clock is None else now_ms - self.clock.ahead_ms()


class Moment(NamedTuple):
    """One sample: the values of some keys at one time (ms, UTC), NaN where there is none."""

    seq: int
    time_ms: int
    keys: tuple[str, ...]
    values: tuple[float, ...]


class Samples:
    """Samples of one set of keys: a table with a row per moment.

    Attributes:
        keys: canonical keys (`cpu`, `gpu.0.powerWatts`, …), the columns.
        times_ms: UTC, a row each, ascending as they were taken (the clock may have been set back).
        seqs: the journal's number of each row.

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
        """The values, one `array('d')` a key. NaN is a gap: no value at that moment. 20 ns a value."""
        flat = array("d", b"".join(self._rows))
        if sys.byteorder == "big":
            flat.byteswap()
        width = len(self.keys)
        return [flat[i::width] for i in range(width)]

    def moments(self) -> Iterator[Moment]:
        """The rows, in order."""
        width = struct.Struct(f"<{len(self.keys)}d")
        for seq, time_ms, row in zip(self.seqs, self.times_ms, self._rows, strict=True):
            yield Moment(seq, time_ms, self.keys, width.unpack(row))

    def __iter__(self) -> Any:
        """Each key with its column."""
        return iter(zip(self.keys, self.columns(), strict=True))


def in_order(tables: Sequence[Samples]) -> Iterator[Moment]:
    """The rows of several tables of one writer, as they were taken."""
    return merge(*(table.moments() for table in tables), key=lambda moment: moment.seq)


class LogRow:
    """One `run.log()` of a training process.

    Attributes:
        seq: the journal's number of the record.
        time_ms: UTC.
        step: the user's step, or the number of the call; None in a journal that has none.
        data: what was logged, under the user's names: numbers, and whatever else JSON can hold.
    """

    __slots__ = ("data", "seq", "step", "time_ms")

    def __init__(self, seq: int, time_ms: int, step: float | None, data: Mapping[str, Any]) -> None:
        self.seq = seq
        self.time_ms = time_ms
        self.step = step
        self.data = data

    def numbers(self) -> dict[str, float]:
        """What of `data` is a number (bool counts as 0 or 1), NaN and infinities included."""
        return {
            key: float(value)
            for key, value in self.data.items()
            if isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 1023)
        }


class Note:
    """Any other record of the journal.

    Attributes:
        seq: its number.
        kind: "event", "lifecycle", "info" or "console".
        value: the record as docs/concepts/journal.md describes it, with "t". Of "console" `{"t", "stream":
            1 for stdout or 2 for stderr, "text"}`.
    """

    __slots__ = ("kind", "seq", "value")

    def __init__(self, seq: int, kind: str, value: Mapping[str, Any]) -> None:
        self.seq = seq
        self.kind = kind
        self.value = value

    @property
    def time_ms(self) -> int:
        return int(self.value.get("t", 0))


class Batch:
    """A stretch of one writer's journal.

    Attributes:
        run: what is known of the run; it already includes what the batch's own "info" notes say.
        writer: who wrote it.
        first_seq, last_seq: the first and last record number of the stretch. (run.id, writer.name, first_seq,
            last_seq) is the batch's idempotence key. last_seq < first_seq: nothing new, a sign of life (see
            `Destination.heartbeat_s`).
        samples: tables of samples, one for each set of keys, in the order of their first rows.
        logs: `run.log()` calls, in order.
        notes: events, lifecycle, info and console records, in order.
        repeated: it may have been delivered before (the answer got lost, or the relay was killed in between).
            Then it is exactly the same stretch.
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
        """Nothing in it: a sign of life."""
        return not (self.samples or self.logs or self.notes)

    def moments(self) -> Iterator[Moment]:
        """All samples in the order in which they were taken, whatever their keys.

        What reckons with the sample before (rates, steps that may not go back) needs them so: the tables
        overlap in time, since what changes slowly is not in every sample.
        """
        return in_order(self.samples)

    @property
    def rows(self) -> int:
        """Samples, one for each moment."""
        return sum(map(len, self.samples))

    @property
    def points(self) -> int:
        """Values of samples and of log rows."""
        return sum(len(table) * len(table.keys) for table in self.samples) + sum(
            len(row.data) for row in self.logs
        )

    def notes_of(self, kind: str) -> list[Note]:
        return [note for note in self.notes if note.kind == kind]
