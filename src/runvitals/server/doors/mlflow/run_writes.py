"""Stores what MLflow's clients log: rows, system metrics, parameters, tags and endings."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import anyio.to_thread
import numpy as np
from fastapi import Request
from starlette.types import Scope

from runvitals.accounts.actions import Action
from runvitals.metrics import mlflow as mlflow_names
from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.limits import STEP as MAX_STEP
from runvitals.model.names import TRUE_TIME, sanitized_name
from runvitals.server.access.control import access_of
from runvitals.server.doors.mlflow.errors import invalid, unknown_run
from runvitals.server.doors.mlflow.limits import MAX_KEY, MAX_SHOWN, checked_name
from runvitals.server.doors.mlflow.metric_history import HOST, HistoryPoint
from runvitals.server.doors.mlflow.params import from_text, params_of
from runvitals.server.doors.mlflow.requests import integer, number
from runvitals.server.doors.mlflow.run_sessions import (
    MONITOR,
    SECTION,
    TAGS,
    TRAIN,
    RunSession,
    RunSessions,
    new_session,
)
from runvitals.server.doors.mlflow.runs import NAME_TAG, NOTE_TAG, Runs, not_active, runs_of
from runvitals.server.doors.recording import DoorRecorder, door_recorder
from runvitals.server.ingest.envelope import Envelope
from runvitals.store.metadata import MetadataStore
from runvitals.store.samples.interface import SampleStore

_ENDINGS: Final[Mapping[str, dict[str, Any]]] = {
    "FINISHED": {"state": "finished", "exit_code": 0},
    "FAILED": {"state": "failed"},
    "KILLED": {"state": "stopped"},
}
_MAX_CHECKED: Final = 100_000
Record = tuple[int, str, dict[str, Any]]


class SentValue(NamedTuple):
    """A value of a metric in a request."""

    key: str
    value: float
    timestamp: int
    step: int


class MlflowDoor:
    """What the routes of this door share.

    Args:
        metadata_store: of the server.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self.sessions = RunSessions(store, metadata_store)
        self._checked: set[str] = set()

    def checked_key(self, key: Any) -> str:
        """The name of a metric. Names repeat, so valid ones are remembered."""
        if isinstance(key, str) and key in self._checked:
            return key
        name = checked_name("metric", key)
        if len(self._checked) >= _MAX_CHECKED:
            self._checked.clear()
        self._checked.add(name)
        return name

    def metric(self, sent: Mapping[str, Any]) -> SentValue:
        """A metric of a request.

        Raises:
            MlflowError: 400.
        """
        key = self.checked_key(sent.get("key"))
        value, timestamp, step = sent.get("value"), sent.get("timestamp"), sent.get("step")
        if value is None:
            raise invalid(
                f"Got invalid value None for metric '{key[:MAX_KEY]}' (timestamp={str(timestamp)[:30]}). "
                "Please specify value as a valid double (64-bit floating point)"
            )
        if type(value) is not float:
            value = number("metric.value", value)
        if type(timestamp) is not int:
            timestamp = integer("metric.timestamp", timestamp)
        if timestamp is None:
            raise invalid("Missing value for required parameter 'metric.timestamp'.")
        if type(step) is not int:
            step = integer("metric.step", step) or 0
        if not -MAX_STEP <= step <= MAX_STEP or not -MAX_STEP <= timestamp <= MAX_STEP:
            raise invalid(f"The step and timestamp of metric '{key[:MAX_SHOWN]}' must be within ±2^53")
        return SentValue(key, value, timestamp, step)


class RunWrites:
    """Writes of one request."""

    def __init__(self, request: Request) -> None:
        self._scope: Scope = request.scope
        self._request = request
        self._recorder: DoorRecorder = door_recorder(request)
        self.door: MlflowDoor = request.app.state.mlflow_door
        self._access = access_of(request)
        self._runs: Runs = runs_of(request)

    @property
    def now_ms(self) -> int:
        return self._access.clock()

    async def session(self, run_id: str) -> RunSession:
        """The run that a request writes to.

        Raises:
            MlflowError: there is none that the requester may write to.
            HTTPException: 401 or 403.
        """
        return await anyio.to_thread.run_sync(self._session, run_id)

    def _session(self, run_id: str) -> RunSession:
        session = self.door.sessions.get(self._runs.number(run_id, Action.RUN_CREATE), self.now_ms)
        if session is None:
            raise unknown_run(run_id)
        return session

    async def record(self, envelopes: Sequence[Envelope], run_id: str, body_bytes: int = 0) -> None:
        """Store envelopes. Returns once everything is durable.

        Raises:
            MlflowError: the run is in the trash.
            HttpRejection: as `DoorRecorder.record`.
        """
        acks = await self._recorder.record(self._scope, envelopes, body_bytes)
        if any(ack.deleted for ack in acks):
            raise not_active(run_id)

    async def log(
        self,
        session: RunSession,
        metrics: Sequence[SentValue],
        params: Mapping[str, str],
        tags: Mapping[str, str],
        body_bytes: int,
    ) -> None:
        """Store metrics, parameters and tags together.

        Raises:
            MlflowError: a parameter has another value already.
        """
        value: dict[str, Any] = {}
        if params:
            fresh = await anyio.to_thread.run_sync(self._new_params, session, params)
            if fresh:
                value["config"] = {key: from_text(text) for key, text in fresh.items()}
        if tags:
            value |= tag_sections(tags)
        envelopes = await self._metric_envelopes(session, metrics)
        if value:
            envelopes.append(session.records([self._info(value)]))
        envelopes.append(session.heartbeat())
        await self.record(envelopes, session.uid, body_bytes)
        session.note(HistoryPoint(*metric) for metric in metrics)

    def _info(self, value: dict[str, Any]) -> Record:
        return 0, "info", {"t": self.now_ms, **value}

    def _new_params(self, session: RunSession, params: Mapping[str, str]) -> dict[str, str]:
        """The parameters that the run does not have.

        Raises:
            MlflowError: it has another value for one.
        """
        sections = self._access.metadata_store.sections.read([session.number], ["config"])
        known = params_of(sections[session.number].shared.get("config", {}))
        for key, text in params.items():
            if known.get(key, text) != text:
                raise invalid(
                    f"Changing param values is not allowed. Param with key='{key[:MAX_SHOWN]}' was already "
                    f"logged with value='{known[key][:MAX_SHOWN]}' for run ID='{session.uid}'. "
                    f"Attempted logging new value '{text[:MAX_SHOWN]}'."
                )
        return {key: text for key, text in params.items() if key not in known}

    # Metrics

    async def _metric_envelopes(self, session: RunSession, metrics: Sequence[SentValue]) -> list[Envelope]:
        rows: dict[tuple[int, int], dict[str, float]] = {}
        system: dict[str, dict[int, dict[str, float]]] = {}
        for key, value, timestamp, step in metrics:
            place = _system_place(key, value) if key.startswith(mlflow_names.PREFIX) else None
            if place is None:
                rows.setdefault((timestamp, step), {})[key] = value
            else:
                host, ours, converted = place
                system.setdefault(host, {}).setdefault(timestamp, {})[ours] = converted
        envelopes = [
            session.samples(MONITOR, keys, list(of_rows), columns, host=host)
            for host, by_time in system.items()
            for keys, of_rows, columns in _tables(by_time)
        ]
        if rows:
            envelopes += await self._row_envelopes(session, rows)
        return envelopes

    async def _row_envelopes(
        self, session: RunSession, rows: dict[tuple[int, int], dict[str, float]]
    ) -> list[Envelope]:
        limits = self._recorder.limits
        oldest_ms, newest_ms = limits.oldest_ms, self.now_ms + limits.ahead_ms
        wanted = list(rows)

        def assign() -> list[int]:
            with session.lock:
                return session.times.assign(wanted, oldest_ms, newest_ms)

        if session.times.needs_store(wanted, oldest_ms, newest_ms):
            times = await anyio.to_thread.run_sync(assign)
        else:
            times = assign()
        by_time: dict[int, dict[str, float]] = {}
        steps: dict[int, int] = {}
        for (timestamp, step), t, values in zip(wanted, times, rows.values(), strict=True):
            by_time[t] = {sanitized_name(key): value for key, value in values.items()}
            if t != timestamp:
                by_time[t][TRUE_TIME] = float(timestamp)
            steps[t] = step
        return [
            session.samples(TRAIN, keys, of_rows, columns, steps=[float(steps[t]) for t in of_rows])
            for keys, of_rows, columns in _tables(by_time)
        ]

    # Runs

    async def create(
        self,
        project: tuple[str | None, str],
        user_id: str,
        name: str,
        start_time: int | None,
        tags: Mapping[str, str],
    ) -> str:
        """Create a run; returns its id.

        Args:
            project: the names of its entity and project.
        """
        uid, now_ms, limits = uuid.uuid4().hex, self.now_ms, self._recorder.limits
        start = now_ms if start_time is None else start_time
        started_ms = start if limits.oldest_ms <= start <= now_ms + limits.ahead_ms else now_ms
        session = new_session(uid, project, started_ms)
        facts = {
            "status": "RUNNING",
            "user_id": user_id,
            "start_time": start,
            "created_ms": started_ms,
            "started_ms": started_ms,
        }
        value = {SECTION: facts, **tag_sections({**tags, NAME_TAG: name})}
        await self.record([session.records([self._info(value)])], uid)
        return uid

    async def update(
        self, session: RunSession, status: str | None, end_time: int | None, name: str | None
    ) -> None:
        """Change the status, the end or the name of a run."""
        facts: dict[str, Any] = {}
        entries: list[Record] = []
        now_ms = self.now_ms
        resumed = status in ("RUNNING", "SCHEDULED")
        if status is not None:
            facts["status"] = status
        if end_time is not None and not resumed:
            facts["end_time"] = end_time
        value: dict[str, Any] = {SECTION: facts} if facts else {}
        if name:
            value |= tag_sections({NAME_TAG: name})
        if resumed:
            was_ended = await anyio.to_thread.run_sync(self._has_ended, session)
            if was_ended:
                session.started_ms = max(now_ms, session.started_ms + 1)
                facts["started_ms"] = session.started_ms
        if value:
            entries.append(self._info(value))
        envelopes = [session.records(entries)] if entries else []
        if status is not None and status in _ENDINGS:
            end = (1, "lifecycle", {"t": self._end_ms(end_time), "what": "end", **_ENDINGS[status]})
            monitors = await anyio.to_thread.run_sync(self._monitors, session)
            envelopes += [session.records([end], name) for name in monitors]
        if envelopes:
            await self.record(envelopes, session.uid)

    def _end_ms(self, end_time: int | None) -> int:
        limits, now_ms = self._recorder.limits, self.now_ms
        if end_time is None or not limits.oldest_ms <= end_time <= now_ms + limits.ahead_ms:
            return now_ms
        return end_time

    def _has_ended(self, session: RunSession) -> bool:
        row = self._access.metadata_store.runs.get([session.number], self.now_ms).get(session.number)
        return row is not None and row.ended_ms is not None

    def _monitors(self, session: RunSession) -> list[str]:
        """The writers that decide about the state of a run: one for each host."""
        writers = self._access.metadata_store.writers.of_runs([session.number])[session.number]
        newest = {one.host: one.name for one in writers if one.role == MONITOR and one.ending is None}
        return sorted({session.writer(MONITOR), *newest.values()})

    async def set_tags(self, session: RunSession, tags: Mapping[str, str]) -> None:
        await self.record([session.records([self._info(tag_sections(tags))])], session.uid)

    async def delete_tag(self, session: RunSession, name: str) -> None:
        removed: dict[str, Any] = {TAGS: [name]}
        if name == NOTE_TAG:
            removed["run"] = ["notes"]
        await self.record([session.records([self._info({"removed": removed})])], session.uid)


def tag_sections(tags: Mapping[str, str]) -> dict[str, Any]:
    """The sections that keep tags: those that mean a name or notes set ours, too."""
    found: dict[str, Any] = {TAGS: dict(tags)}
    about = {}
    if tags.get(NAME_TAG):
        about["name"] = tags[NAME_TAG]
    if NOTE_TAG in tags:
        about["notes"] = tags[NOTE_TAG]
    if about:
        found["run"] = about
    return found


def _system_place(key: str, value: float) -> tuple[str, str, float] | None:
    """The host, our key and the value in our unit of a system metric of MLflow; None for other names."""
    match = mlflow_names.from_mlflow(key)
    if match is None:
        return None
    node = key.removeprefix(mlflow_names.PREFIX).rpartition("/")[0]
    factor = match.metric.mlflow_factor
    return node[:LABEL_CHARACTERS] or HOST, match.key, value / factor if factor != 1.0 else value


def _tables(
    rows: Mapping[int, Mapping[str, float]],
) -> Iterable[tuple[list[str], list[int], np.ndarray[Any, np.dtype[np.float64]]]]:
    """Rows with the same keys together, so that no value is missing: a NaN is one that was logged."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for t, values in rows.items():
        groups.setdefault(tuple(values), []).append(t)
    for keys, times in groups.items():
        columns = np.array([list(rows[t].values()) for t in times], np.float64)
        yield list(keys), times, columns.reshape(len(times), len(keys))
