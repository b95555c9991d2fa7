"""Runs that MLflow's clients write to, in memory: writers, row times and latest values."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Final

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.model.names import STEP, TRUE_TIME
from runvitals.server.doors import recording
from runvitals.server.doors.mlflow.metric_columns import MetricColumns
from runvitals.server.doors.mlflow.metric_history import HOST, HistoryPoint, newer
from runvitals.server.doors.mlflow.repeated_values import ReadValues, beside_stored
from runvitals.server.doors.mlflow.row_times import RowTimes, StoredRows
from runvitals.server.doors.mlflow.writes_in_flight import WritesInFlight
from runvitals.server.doors.sending_interval import SendingInterval
from runvitals.server.ingest.envelope import Envelope, WriterDescription
from runvitals.server.library.stored.true_times import true_times
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleStore

INTERVAL_S: Final = 600.0
"""The interval of runs without system metrics. MLflow's clients send nothing while a training logs nothing.
After five times this, a run is lost."""
SECTION: Final = "mlflow"
"""The section of what MLflow knows of a run: its status, user and times as the client sent them."""
TAGS: Final = "mlflow_tags"
HEARTBEAT_MS: Final = 5000
_MAX_SESSIONS: Final = 2000
_MAX_HOSTS: Final = 10_000
_MAX_LATEST: Final = 1_000_000
MONITOR, TRAIN = "monitor", "train"
_NO_ROWS: Final = StoredRows(np.empty(0, np.int64), np.empty(0), np.empty(0))


@dataclass(slots=True)
class RunSession:
    """A run that is written to.

    Attributes:
        started_ms: when the client started or resumed the run.
        created_ms: when it started it first.
        times: of its rows.
        read_values: reads values of its metrics.
        latest: the latest value of each metric; None: not read yet.
        heard_ms: when the last heartbeat was recorded.
        system: how often system metrics arrive, by host.
        in_flight: what is being stored.
        setting_params: held while parameters are compared with those that are stored, and stored.
        notes: how often values were noted, by which a reader sees that its result is out of date.
    """

    number: int
    uid: str
    entity: str | None
    project: str
    created_ms: int
    started_ms: int
    times: RowTimes
    read_values: ReadValues
    lock: Lock = field(default_factory=Lock)
    latest: dict[str, HistoryPoint] | None = None
    notes: int = 0
    heard_ms: int = 0
    system: dict[str, SendingInterval] = field(default_factory=dict)
    in_flight: WritesInFlight = field(default_factory=WritesInFlight)
    setting_params: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_silent(self, now_ms: int) -> bool:
        """Return whether a heartbeat is due."""
        return not 0 <= now_ms - self.heard_ms < HEARTBEAT_MS

    def heard(self, now_ms: int) -> None:
        """Note that a heartbeat was recorded, if one was due."""
        if self.is_silent(now_ms):
            self.heard_ms = now_ms

    def beside_stored(self, metrics: MetricColumns, oldest_ms: int, newest_ms: int) -> MetricColumns:
        """Return the values, numbered so that none replaces another one. Reads the store."""

        def times_of(timestamp: int, step: int) -> list[int]:
            with self.lock:
                return self.times.times_of(timestamp, step, oldest_ms, newest_ms)

        return beside_stored(metrics, times_of, self.read_values)

    def writer(self, role: str, host: str = HOST) -> str:
        """Return the name of a writer."""
        if role == TRAIN:
            return f"{TRAIN}.{host}.0.{self.created_ms:x}"
        return f"{MONITOR}.{host}.{self.started_ms:x}"

    def about(self, role: str, host: str = HOST) -> WriterDescription:
        """Return the description of a writer of the run when it is new."""
        started_ms = self.created_ms if role == TRAIN else self.started_ms
        interval_s = self.interval_s(host)
        return WriterDescription(role=role, host=host, interval_s=interval_s, started_ms=started_ms)

    def interval_s(self, host: str) -> float:
        """Return how long a host is normally silent at most. All requests count for `HOST`."""
        of_host = self.system.values() if host == HOST else [self.system[host]] if host in self.system else []
        seconds = [interval.seconds for interval in of_host if interval.is_known]
        return max(seconds, default=INTERVAL_S)

    def note_system(self, host: str, time_ms: int) -> None:
        """Note that system metrics of a host have arrived. `time_ms`: the newest one."""
        if host in self.system or len(self.system) < _MAX_HOSTS:
            self.system.setdefault(host, SendingInterval()).add(time_ms)

    def samples(
        self,
        role: str,
        keys: Sequence[str],
        times_ms: Sequence[int] | Integers,
        columns: Any,
        steps: Integers | None = None,
        host: str = HOST,
    ) -> Envelope:
        """Return an envelope with samples of the run."""
        return recording.samples(
            self.uid,
            self.writer(role, host),
            keys,
            times_ms,
            columns,
            project=self.project,
            entity=self.entity,
            about=self.about(role, host),
            steps=steps,
        )

    def records(self, entries: Sequence[tuple[int, str, dict[str, Any]]], writer: str = "") -> Envelope:
        """Return an envelope with records, of the monitor unless a writer is named."""
        return recording.records(
            self.uid,
            writer or self.writer(MONITOR),
            entries,
            project=self.project,
            entity=self.entity,
            about=self.about(MONITOR),
        )

    def heartbeat(self) -> Envelope:
        """Return an envelope that says that the client is alive."""
        envelope = recording.heartbeat(
            self.uid, self.writer(MONITOR), project=self.project, entity=self.entity
        )
        envelope.about = self.about(MONITOR)
        return envelope

    def note(self, metrics: MetricColumns) -> None:
        """Note values that were stored."""
        self.notes += 1
        if self.latest is None:
            return
        for point in metrics.newest():
            if newer(point, self.latest.get(point.key)):
                self.latest[point.key] = point


def new_session(uid: str, project: tuple[str | None, str], started_ms: int) -> RunSession:
    """Return a run that is about to be created. `project`: the names of its entity and project."""

    def read(t0_ms: int, t1_ms: int) -> StoredRows:
        return _NO_ROWS

    def read_values(names: Sequence[str], t0_ms: int, t1_ms: int) -> Mapping[str, Mapping[int, float]]:
        return {}

    times = RowTimes(read, -1, started_ms)
    return RunSession(0, uid, *project, started_ms, started_ms, times, read_values)


class RunSessions:
    """The runs that were written to recently."""

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self._sessions: OrderedDict[int, RunSession] = OrderedDict()
        self._by_uid: dict[str, RunSession] = {}
        self._lock = Lock()

    def of_uid(self, uid: str) -> RunSession | None:
        """Return the session of a run by its id, of any team: check the rights."""
        return self._by_uid.get(uid)

    def drop(self, number: int) -> None:
        """Forget a run, which was moved or started anew."""
        with self._lock:
            dropped = self._sessions.pop(number, None)
            if dropped is not None:
                self._by_uid.pop(dropped.uid, None)

    def get(self, number: int, now_ms: int) -> RunSession | None:
        """Return the session of a run by its number; None if there is no such run. Reads the database."""
        remembered = self._sessions.get(number)
        if remembered is not None:
            return remembered
        row = self._metadata_store.runs.get([number], now_ms).get(number)
        if row is None:
            return None
        facts = self._metadata_store.sections.read([number], [SECTION])[number].shared.get(SECTION, {})
        created_ms = _time(facts.get("created_ms"), row.started_ms)
        writer = f"{TRAIN}.{HOST}.0.{created_ms:x}"
        read, newest_ms = self._rows_of(number, writer)
        session = RunSession(
            number,
            row.uid,
            row.entity,
            row.project,
            created_ms,
            _time(facts.get("started_ms"), row.started_ms),
            RowTimes(read, newest_ms, created_ms),
            partial(self._values_of, number, writer),
        )
        with self._lock:
            session = self._sessions.setdefault(number, session)
            self._by_uid[session.uid] = session
            latest = 0
            for other in reversed(list(self._sessions.values())):
                latest += len(other.latest or ())
                if latest > _MAX_LATEST:
                    other.latest = None
            while len(self._sessions) > _MAX_SESSIONS:
                _, oldest = self._sessions.popitem(last=False)
                self._by_uid.pop(oldest.uid, None)
        return session

    def _lane(self, number: int, writer: str) -> int | None:
        writers = self._metadata_store.writers.of_runs([number])[number]
        return next((registered.lane_id for registered in writers if registered.name == writer), None)

    def _values_of(
        self, number: int, writer: str, names: Sequence[str], t0_ms: int, t1_ms: int
    ) -> Mapping[str, Mapping[int, float]]:
        """Return values of a writer's metrics, by name and time."""
        lane = self._lane(number, writer)
        name_of = {metric: name for name, metric in self._metadata_store.metrics.find(names).items()}
        if lane is None or not name_of:
            return {}
        return {
            name_of[series.metric]: dict(zip(series.t.tolist(), series.values.tolist(), strict=True))
            for series in self._store.read([lane], list(name_of), t0_ms, t1_ms).series
        }

    def _rows_of(self, number: int, writer: str) -> tuple[Callable[[int, int], StoredRows], int]:
        """Return a reader of a writer's stored rows, and the time of its newest one; -1 without any."""

        def read(t0_ms: int, t1_ms: int) -> StoredRows:
            lane = self._lane(number, writer)
            ids = self._metadata_store.metrics.find([STEP, TRUE_TIME])
            if lane is None or STEP not in ids:
                return _NO_ROWS
            series_by_key = {
                series.metric: series
                for series in self._store.read([lane], list(ids.values()), max(0, t0_ms), t1_ms).series
            }
            rows = series_by_key.get(ids[STEP])
            if rows is None:
                return _NO_ROWS
            moved = series_by_key.get(ids.get(TRUE_TIME, -1))
            timestamps = true_times(rows.t, None if moved is None else (moved.t, moved.values))
            return StoredRows(rows.t, timestamps, rows.values)

        lane = self._lane(number, writer)
        return read, -1 if lane is None else self._store.last_times([lane]).get(lane, -1)


def _time(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
