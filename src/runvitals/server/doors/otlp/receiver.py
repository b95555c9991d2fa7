"""Stores the metrics of a request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

import anyio.to_thread
from starlette.types import Scope

from runvitals.server.doors.otlp.conversion import Conversion
from runvitals.server.doors.otlp.message import Resource
from runvitals.server.doors.otlp.prometheus_names import SECTION
from runvitals.server.doors.otlp.series import RememberedRun, ResourceSeries
from runvitals.server.doors.project_rules import ProjectRules, home_of
from runvitals.server.doors.recording import DoorRecorder, records
from runvitals.server.doors.routing import NamedPlace, Route, RoutingRules, address_of, route_of, writer_host
from runvitals.server.ingest.envelope import Envelope

_MAX_RUNS: Final = 2000
_MAX_SERIES: Final = 500_000
"""The most series of all runs; each takes about 500 bytes."""
_MAX_RESOURCES: Final = 1000
_CONVERTED_AT_ONCE: Final = 8 * 1024
"""Bytes of a body. A larger one is converted in a thread: 20,000 points take 0.1 s."""
_RECEIVED_AT_ONCE: Final = 100
"""Resources. Each may be a run of its own, and other requests wait while they are stored."""
_MAX_NAMED: Final = 100
_MAX_TEXT: Final = 1000


class Received(NamedTuple):
    """The number of points that were rejected, and why."""

    rejected: int
    reason: str


class _Routed(NamedTuple):
    resource: Resource
    route: Route
    rules: RoutingRules


class OtlpReceiver:
    """Stores what OpenTelemetry sends.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, recorder: DoorRecorder, rules: ProjectRules, clock: Callable[[], int]) -> None:
        self.recorder = recorder
        self._rules = rules
        self._clock = clock
        self._runs: OrderedDict[tuple[str | int | None, str], RememberedRun] = OrderedDict()

    async def receive(
        self, scope: Scope, resources: Sequence[Resource], sender: NamedPlace, body_bytes: int
    ) -> Received:
        """Store the metrics of a request; returns when they are durable.

        Args:
            scope: of the request, which has been authenticated.
            sender: the project that the request names.

        Raises:
            HttpRejection: see `DoorRecorder.record`. Of a request with many resources, the first ones may
                have been stored.
        """
        rejected, reason = 0, ""
        for first in range(0, len(resources), _RECEIVED_AT_ONCE):
            part = resources[first : first + _RECEIVED_AT_ONCE]
            received = await self._receive(scope, part, sender, body_bytes * len(part) // len(resources))
            rejected += received.rejected
            reason = reason or received.reason
        return Received(rejected, reason)

    async def _receive(
        self, scope: Scope, resources: Sequence[Resource], sender: NamedPlace, body_bytes: int
    ) -> Received:
        sent_resources: list[_Routed] = []
        for resource in resources:
            if not resource.metrics:
                continue
            address = address_of(resource.attributes, sender)
            rules = await self._rules.of(scope, address)
            sent_resources.append(_Routed(resource, route_of(resource.attributes, rules, address), rules))
        conversion = Conversion(self._clock(), self.recorder.limits)
        async with AsyncExitStack() as stack:
            runs = [self._run(scope, sent.route) for sent in sent_resources]
            for run in {id(run): run for run in sorted(runs, key=id)}.values():
                await stack.enter_async_context(run.lock)
            about: list[Envelope] = []
            envelopes = await _envelopes(conversion, sent_resources, runs, body_bytes)
            stored = {envelope.run for envelope in envelopes}
            for sent, run in zip(sent_resources, runs, strict=True):
                if not run.is_named and sent.route.run in stored:
                    run.is_named = True
                    about.append(_about_run(sent, run, self.recorder.limits.oldest_ms))
                if run.unsent_names and sent.route.run in stored:
                    about.append(_about_names(sent, run, self._clock()))
            try:
                if envelopes:
                    await self.recorder.record(scope, [*envelopes, *about], body_bytes)
            except BaseException:
                for run in runs if about else ():
                    run.is_named = False
                raise
            conversion.commit()
        self._forget_some()
        return Received(conversion.rejected, conversion.reason)

    def forget(self) -> None:
        """Forget all series, as at the end of the server: totals that are added up here begin anew."""
        self._runs.clear()

    def _run(self, scope: Scope, route: Route) -> RememberedRun:
        key = route.entity or home_of(scope), route.run
        run = self._runs.pop(key, None) or RememberedRun()
        self._runs[key] = run
        return run

    def _forget_some(self) -> None:
        """Forget the runs that have not sent for the longest time, if there are too many runs or series."""
        series = sum(run.series for run in self._runs.values())
        while len(self._runs) > _MAX_RUNS or (series > _MAX_SERIES and len(self._runs) > 1):
            _, run = self._runs.popitem(last=False)
            series -= run.series


async def _envelopes(
    conversion: Conversion,
    sent_resources: Sequence[_Routed],
    runs: Sequence[RememberedRun],
    body_bytes: int,
) -> list[Envelope]:
    """Return envelopes with the metrics of some runs, whose locks are held."""

    def convert() -> list[Envelope]:
        for sent, run in zip(sent_resources, runs, strict=True):
            conversion.add(sent.resource, _series(sent, run), run)
        return list(conversion.envelopes())

    return convert() if body_bytes <= _CONVERTED_AT_ONCE else await anyio.to_thread.run_sync(convert)


def _series(sent: _Routed, run: RememberedRun) -> ResourceSeries:
    """Return the series of a resource; those of before, if its attributes and the rules are the same."""
    key = frozenset(sent.resource.attributes.items()), sent.route, sent.rules
    series = run.resources.get(key)
    if series is None:
        if len(run.resources) >= _MAX_RESOURCES:
            run.resources.clear()
        run.count_series(sent.resource.attributes)
        series = run.resources[key] = ResourceSeries(sent.resource.attributes, sent.route, sent.rules, run)
    return series


def _about_run(sent: _Routed, run: RememberedRun, time_ms: int) -> Envelope:
    """Return the name of a run, and of a training the attributes of its first resource.

    Args:
        time_ms: earlier than any change by users, which then counts: this is sent after each restart.
    """
    route = sent.route
    value: dict[str, object] = {"t": time_ms}
    if route.run_name is not None:
        value["run"] = {"name": route.run_name}
    if not route.is_host_run:
        attributes = list(sent.resource.attributes.items())[:_MAX_NAMED]
        value["config"] = {"resource": {name: text[:_MAX_TEXT] for name, text in attributes}}
    return _info(route, run, value)


def _about_names(sent: _Routed, run: RememberedRun, time_ms: int) -> Envelope:
    """Return Prometheus' names of the metrics that are new in a run."""
    return _info(sent.route, run, {"t": time_ms, SECTION: dict(run.unsent_names)})


def _info(route: Route, run: RememberedRun, value: dict[str, object]) -> Envelope:
    writer = f"monitor.{writer_host(route.host)}.otlp"
    about = run.host(route.host).about
    return records(
        route.run, writer, [(0, "info", value)], project=route.project, entity=route.entity, about=about
    )
