"""Reads the metrics of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import anyio.to_thread
from fastapi import Request

from runvitals.model.errors import UnknownRun
from runvitals.server.doors.mlflow.door import PAGED_BYTES
from runvitals.server.doors.mlflow.metric_history import (
    HistoryPoint,
    MetricValues,
    all_history,
    history_of,
    latest_point,
)
from runvitals.server.doors.mlflow.run_sessions import RunSessions
from runvitals.server.doors.mlflow.runs import TrackedRun
from runvitals.server.library.run_library import RunView
from runvitals.server.service_parameters import access_of
from runvitals.server.services import shared_services_of

T = TypeVar("T")


class RunReads:
    """Reads of one request."""

    def __init__(self, request: Request) -> None:
        self._library = shared_services_of(request).library
        door = shared_services_of(request).mlflow_door()
        self._sessions: RunSessions = door.sessions
        self._pages = door.paged_histories
        self._clock = access_of(request).clock

    async def _use(self, number: int, work: Callable[[RunView], T], nothing: T) -> T:
        try:
            opened = await self._library.open("", number)
            return await opened.use(work)
        except UnknownRun:  # it is in the trash, where nothing is read
            return nothing

    async def history(self, number: int, name: str) -> MetricValues:
        """Return the values of a metric."""
        return await self._use(number, lambda view: history_of(view, name), MetricValues.nothing())

    async def history_page(self, number: int, name: str, first: int, most: int) -> tuple[MetricValues, int]:
        """Return the values of a metric, and where the page of at most so many that begins at `first` ends.

        Pages after the first are of what was read for it, unless that was a while ago.
        """
        values = self._pages.get((number, name)) if first else None
        if values is None or not await self._is_readable(number):
            values = await self.history(number, name)
            if values.nbytes <= PAGED_BYTES:
                self._pages[number, name] = values
        end = min(len(values.values), first + most)
        if end == len(values.values):
            self._pages.pop((number, name), None)
        return values, end

    async def _is_readable(self, number: int) -> bool:
        try:
            await self._library.open("", number)
        except UnknownRun:
            return False
        return True

    async def latest(self, run: TrackedRun) -> list[HistoryPoint]:
        """Return the latest value of each metric of a run."""
        number, nothing = run.row.id, list[HistoryPoint]()
        if not run.facts or run.row.deleted_ms is not None:  # others may write to it
            return await self._use(number, _latest, nothing)
        session = await anyio.to_thread.run_sync(self._sessions.get, number, self._clock())
        if session is None:
            return []
        if session.latest is None:
            notes = session.notes
            points = await self._use(number, _latest, nothing)
            if notes != session.notes:
                return points
            session.latest = {point.key: point for point in points}
        return list(session.latest.values())

    async def with_metrics(self, runs: Iterable[TrackedRun]) -> list[dict[str, object]]:
        """Return runs as JSON."""
        return [run.as_json(await self.latest(run)) for run in runs]


def _latest(view: RunView) -> list[HistoryPoint]:
    points = (latest_point(name, history) for name, history in all_history(view).items())
    return [point for point in points if point is not None]
