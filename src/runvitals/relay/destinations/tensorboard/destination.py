"""The destination `tensorboard:LOGDIR`: a run as event files, for `tensorboard --logdir LOGDIR`.

    LOGDIR/<name>-<run id>/             the first training process: what was logged, the configuration
    LOGDIR/<name>-<run id>/rank3/       other training processes
    LOGDIR/<name>-<run id>/system/<host>/   CPU, memory, accelerators, …; events

Logged values have the user's steps. Samples have the seconds since the start of the run as their step, and
are grouped like the charts of the runvitals page; counters are shown as rates.

Exactly once: bytes that a crash left after a file's known length are truncated before the same range is
written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import isnan
from typing import NamedTuple

from runvitals.journal.paths import safe_name
from runvitals.model.metrics import DEFINITIONS
from runvitals.readers.journals.history import leaves
from runvitals.readers.journals.rates import Rate, rate_between, rate_of
from runvitals.relay.batch import EVENT, LIFECYCLE, Batch, Moment, Note
from runvitals.relay.destination import Context, Destination
from runvitals.relay.destinations.tensorboard import event_messages
from runvitals.relay.destinations.tensorboard.tfrecords import record
from runvitals.relay.engine.exactly_once import all_or_nothing, append

DEFAULT_FOLDER = "runs"  # the default of SummaryWriter
_MAIN, _TRAIN = "", "train"


class TensorBoardDestination(Destination):
    """Writes event files.

    Args:
        address: the folder, relative to the training's working directory; "" is `runs`.
        context: `state` keeps the length of each file, the run's folder, the first training process, and the
            last value of each counter.

    Raises:
        ValueError: the address is not a folder.
    """

    name = "tensorboard"
    interval_s = 5.0

    def __init__(self, address: str, context: Context) -> None:
        self._root = os.path.join(context.cwd, os.path.expanduser(address or DEFAULT_FOLDER))
        if os.path.exists(self._root) and not os.path.isdir(self._root):
            raise ValueError(f"tensorboard: {self._root} is not a folder")
        self._state = context.state

    def deliver(self, batch: Batch) -> None:
        """Append a batch, or raise OSError and append nothing."""
        with all_or_nothing(self._state):
            self._write(batch)

    def _write(self, batch: Batch) -> None:
        if batch.empty:
            return
        self._append(batch, self._folder(batch), self._events(batch))
        config = batch.run.config
        main = self._state.get("main")
        if main == batch.writer.name and config != self._state.get("config"):
            self._state["config"] = dict(config)
            self._append(batch, _MAIN, self._configuration(batch))
        for note in batch.notes_of(LIFECYCLE):
            if note.value.get("what") == "end" and main is not None:
                self._append(
                    batch, _MAIN, [event_messages.session_end(note.time_ms, str(note.value.get("state")))]
                )

    def _folder(self, batch: Batch) -> str:
        """Return the folder of a writer's events inside the run's folder.

        Each writer has its own, because TensorBoard reads the files of a folder one after the other.
        """
        writer = batch.writer
        if writer.role != _TRAIN:
            return os.path.join("system", safe_name(writer.host))
        if writer.rank in (None, 0) and self._state.setdefault("main", writer.name) == writer.name:
            return _MAIN
        return f"process{writer.pid}" if writer.rank is None else f"rank{writer.rank}"

    def _append(self, batch: Batch, folder: str, records: Iterable[bytes]) -> None:
        data = b"".join(map(record, records))
        if not data:
            return
        path = self._path(batch, folder)
        lengths: dict[str, int] = self._state.setdefault("lengths", {})
        length = lengths.get(path, 0)
        if not length:
            data = record(event_messages.head(self._began_ms(batch))) + data
        lengths[path] = append(path, length, data)

    def _path(self, batch: Batch, folder: str) -> str:
        run = batch.run
        name = safe_name(run.name)
        base = self._state.setdefault("folder", name if run.name == run.id else f"{name}-{run.id}")
        files: dict[str, str] = self._state.setdefault("files", {})
        if folder not in files:
            began_s = self._began_ms(batch) // 1000
            host = safe_name(batch.writer.host)
            files[folder] = f"events.out.tfevents.{began_s}.{host}.{batch.writer.pid or 0}.runvitals"
        return os.path.join(self._root, base, folder, files[folder])

    def _began_ms(self, batch: Batch) -> int:
        """Return when the run started on this host, according to the first record delivered."""
        if "began_ms" not in self._state:
            self._state["began_ms"] = batch.writer.started_ms or next(_times(batch), 0)
        return int(self._state["began_ms"])

    def _events(self, batch: Batch) -> Iterator[bytes]:
        since_ms = self._began_ms(batch)
        for moment in batch.moments():
            yield from self._sample(moment, batch.writer.name, since_ms)
        for row in batch.logs:
            numbers = [(key, value, "") for key, value in row.numbers().items()]
            step = event_messages.seconds(row.time_ms, since_ms) if row.step is None else int(row.step)
            if numbers:
                yield event_messages.scalars(row.time_ms, step, numbers)
            for key, value in row.data.items():
                if isinstance(value, str):
                    yield event_messages.words(row.time_ms, step, key, event_messages.escape(value))
        for note in batch.notes_of(EVENT):
            yield _event_text(note, since_ms)

    def _sample(self, moment: Moment, writer: str, since_ms: int) -> Iterator[bytes]:
        last: dict[str, list[float]] = self._state.setdefault("counters", {}).setdefault(writer, {})
        # Descriptions are longer than the rest of a value, and TensorBoard needs each only once.
        described: dict[str, None] = self._state.setdefault("told", {}).setdefault(writer, {})
        scalars = []
        for key, value in zip(moment.keys, moment.values, strict=True):
            mapping = tag_mapping(key)
            if mapping.rate is not None:
                value = _rate(last, key, moment.time_ms, value, mapping.rate)
            if not isnan(value):  # a gap
                scalars.append((mapping.tag, value, "" if mapping.tag in described else mapping.about))
                described[mapping.tag] = None
        if scalars:
            step = event_messages.seconds(moment.time_ms, since_ms)
            yield event_messages.scalars(moment.time_ms, step, scalars)

    def _configuration(self, batch: Batch) -> Iterator[bytes]:
        now_ms = self._began_ms(batch)
        flat = dict(leaves(batch.run.config))
        yield event_messages.words(now_ms, 0, "config", event_messages.table(flat))
        yield event_messages.session_start(now_ms, batch.run.name, flat)


def _times(batch: Batch) -> Iterator[int]:
    yield from (table.times_ms[0] for table in batch.samples)
    yield from (row.time_ms for row in batch.logs)
    yield from (note.time_ms for note in batch.notes)


def _rate(last: dict[str, list[float]], key: str, time_ms: int, value: float, rate: Rate) -> float:
    """Return the rate of a counter since its last sample; NaN for the first."""
    before = last.get(key)
    last[key] = [time_ms, value]
    return (
        float("nan")
        if before is None
        else rate_between(int(before[0]), before[1], time_ms, value, rate.factor)
    )


class TagMapping(NamedTuple):
    """The tag of a key, the description behind the "i", and the rate that replaces a counter."""

    tag: str
    about: str
    rate: Rate | None


@lru_cache(16_384)
def tag_mapping(key: str) -> TagMapping:
    """Return the tag, description and rate of a key.

    Example:
        >>> tag_mapping("gpu.0.powerWatts").tag
        'GPU power/gpu.0.powerWatts'
    """
    rate = rate_of(key)
    if rate is not None:
        key = rate.key
    match = DEFINITIONS.find(key)
    if match is None:
        return TagMapping(f"{key.partition('.')[0]}/{key}", "", rate)
    metric = match.metric
    unit = f" ({metric.unit})" if metric.unit != "1" else ""
    return TagMapping(f"{metric.chart}/{key}", f"{metric.text}{unit}", rate)


def _event_text(note: Note, since_ms: int) -> bytes:
    value = note.value
    message = value.get("text") or value.get("name")
    text = f"{event_messages.utc(note.time_ms)} {value.get('level', 'info')}: {message}"
    step = event_messages.seconds(note.time_ms, since_ms)
    return event_messages.words(
        note.time_ms, step, f"events/{value.get('name')}", event_messages.escape(text)
    )
