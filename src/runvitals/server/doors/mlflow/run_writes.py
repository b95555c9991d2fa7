"""Stores what MLflow's clients log: rows, system metrics, parameters, tags and endings."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import anyio.to_thread
import numpy as np
from fastapi import Request
from starlette.types import Scope

from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.metrics import mlflow as mlflow_names
from runvitals.server.access.actions import Action
from runvitals.server.doors.mlflow.door import StoredMetrics, is_system, system_match
from runvitals.server.doors.mlflow.errors import invalid, unknown_run
from runvitals.server.doors.mlflow.limits import MAX_SHOWN
from runvitals.server.doors.mlflow.metric_columns import MetricColumns
from runvitals.server.doors.mlflow.metric_history import HOST
from runvitals.server.doors.mlflow.params import from_text, params_of
from runvitals.server.doors.mlflow.run_sessions import (
    MONITOR,
    SECTION,
    TAGS,
    TRAIN,
    RunSession,
    new_session,
)
from runvitals.server.doors.mlflow.runs import NAME_TAG, NOTE_TAG, Runs, not_active, runs_of
from runvitals.server.doors.recording import DoorRecorder
from runvitals.server.ingest.envelope import Envelope
from runvitals.server.library.stored.true_times import with_true_times
from runvitals.server.service_parameters import access_of, door_recorder
from runvitals.server.services import shared_services_of

_ENDINGS: Final[Mapping[str, dict[str, Any]]] = {
    "FINISHED": {"state": "finished", "exit_code": 0},
    "FAILED": {"state": "failed"},
    "KILLED": {"state": "stopped"},
}
Record = tuple[int, str, dict[str, Any]]


class RunWrites:
    """Writes of one request."""

    def __init__(self, request: Request) -> None:
        self._scope: Scope = request.scope
        self._request = request
        self._recorder: DoorRecorder = door_recorder(request)
        self.door = shared_services_of(request).mlflow_door()
        self._access = access_of(request)
        self._runs: Runs = runs_of(request)

    @property
    def now_ms(self) -> int:
        """The time now, ms UTC."""
        return self._access.clock()

    async def session(self, run_id: str) -> RunSession:
        """Return the run that a request writes to.

        Raises:
            MlflowError: there is none that the requester may write to.
            HTTPException: 401 or 403.
        """
        session = self.door.sessions.of_uid(run_id)
        if session is not None and session.number == self._recorder.run_of(self._scope, session.heartbeat()):
            return session  # a request of the same rights was stored before
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
        metrics: StoredMetrics,
        params: Mapping[str, str],
        tags: Mapping[str, str],
        body_bytes: int,
    ) -> None:
        """Store metrics, parameters and tags together.

        Raises:
            MlflowError: a parameter has another value already.
        """
        value: dict[str, Any] = tag_sections(tags) if tags else {}
        # Of two requests at once, neither would find the parameters of the other one.
        async with session.setting_params if params else nullcontext():
            fresh = await anyio.to_thread.run_sync(self._new_params, session, params) if params else {}
            if fresh:
                value["config"] = {key: from_text(text) for key, text in fresh.items()}
            async with session.in_flight.alone(metrics.columns.timestamps):
                envelopes = await self._metric_envelopes(session, metrics)
                if value:
                    envelopes.append(session.records([self._info(value)]))
                if session.is_silent(self.now_ms):
                    envelopes.append(session.heartbeat())
                await self.record(envelopes, session.uid, body_bytes)
        session.heard(self.now_ms)
        session.note(metrics.columns)

    def _info(self, value: dict[str, Any]) -> Record:
        return 0, "info", {"t": self.now_ms, **value}

    def _new_params(self, session: RunSession, params: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters that the run does not have.

        Raises:
            MlflowError: it has another value for one.
        """
        sections = self._access.metadata_store.sections.read([session.number], ["config"])
        stored = params_of(sections[session.number].shared.get("config", {}))
        for key, text in params.items():
            if stored.get(key, text) != text:
                raise invalid(
                    f"Changing param values is not allowed. Param with key='{key[:MAX_SHOWN]}' was already "
                    f"logged with value='{stored[key][:MAX_SHOWN]}' for run ID='{session.uid}'. "
                    f"Attempted logging new value '{text[:MAX_SHOWN]}'."
                )
        return {key: text for key, text in params.items() if key not in stored}

    # Metrics

    async def _metric_envelopes(self, session: RunSession, metrics: StoredMetrics) -> list[Envelope]:
        envelopes: list[Envelope] = []
        logged = metrics.columns
        if metrics.has_system:
            system, logged = logged.of_names(is_system)
            envelopes += _system_envelopes(session, system)
        limits = self._recorder.limits
        accepted = limits.oldest_ms, self.now_ms + limits.ahead_ms
        logged = logged.distinct()
        if session.times.follows(logged.timestamps, *accepted):
            return envelopes + _row_envelopes(session, logged, accepted)

        def beside_stored() -> list[Envelope]:
            return _row_envelopes(session, session.beside_stored(logged, *accepted), accepted)

        return envelopes + await anyio.to_thread.run_sync(beside_stored)

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
        if end_time is not None:
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
        """Return the writers that decide about the state of a run: one for each host."""
        writers = self._access.metadata_store.writers.of_runs([session.number])[session.number]
        newest = {
            writer.host: writer.name for writer in writers if writer.role == MONITOR and writer.ending is None
        }
        return sorted({session.writer(MONITOR), *newest.values()})

    async def set_tags(self, session: RunSession, tags: Mapping[str, str]) -> None:
        """Store tags of a run."""
        await self.record([session.records([self._info(tag_sections(tags))])], session.uid)

    async def delete_tag(self, session: RunSession, name: str) -> None:
        """Remove a tag of a run; that of the notes removes our notes too."""
        removed: dict[str, Any] = {TAGS: [name]}
        if name == NOTE_TAG:
            removed["run"] = ["notes"]
        await self.record([session.records([self._info({"removed": removed})])], session.uid)


def tag_sections(tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the sections that keep tags: those that mean a name or notes set ours, too."""
    sections: dict[str, Any] = {TAGS: dict(tags)}
    about = {}
    if tags.get(NAME_TAG):
        about["name"] = tags[NAME_TAG]
    if NOTE_TAG in tags:
        about["notes"] = tags[NOTE_TAG]
    if about:
        sections["run"] = about
    return sections


def _row_envelopes(session: RunSession, metrics: MetricColumns, accepted: tuple[int, int]) -> list[Envelope]:
    """Return logged rows. `accepted`: the first and the last time that the store accepts."""
    envelopes = []
    for names, timestamps, steps, repeats, values in metrics.tables():
        with session.lock:
            times = session.times.assign(timestamps, steps, repeats, *accepted)
        keys, columns = with_true_times(names, values, times, timestamps)
        envelopes.append(session.samples(TRAIN, keys, times, columns, steps=steps))
    return envelopes


def _system_envelopes(session: RunSession, metrics: MetricColumns) -> list[Envelope]:
    """Return system metrics under our keys in our units. Those of a client come every 10 s, 20 at a time."""
    by_host: dict[str, dict[int, dict[str, float]]] = {}
    for name, value, timestamp, _ in metrics.points():
        match = system_match(name)
        assert match is not None
        node = name.removeprefix(mlflow_names.PREFIX).rpartition("/")[0]
        factor = match.metric.mlflow_factor
        row = by_host.setdefault(node[:LABEL_CHARACTERS] or HOST, {}).setdefault(timestamp, {})
        row[match.key] = value / factor if factor != 1.0 else value
    envelopes = []
    for host, rows in by_host.items():
        groups: dict[tuple[str, ...], list[int]] = {}  # rows with the same keys: a NaN is one that was logged
        for t, values in rows.items():
            groups.setdefault(tuple(values), []).append(t)
        for keys, times in groups.items():
            columns = np.array([list(rows[t].values()) for t in times], np.float64)
            session.note_system(host, max(times))
            envelopes.append(session.samples(MONITOR, keys, times, columns, host=host))
    return envelopes
