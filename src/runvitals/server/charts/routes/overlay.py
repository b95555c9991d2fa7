"""`/overlay`: the same metrics of several runs, over each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, HTTPException, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from runvitals.base import deadline
from runvitals.journal.paths import check_run_id
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.server.access.permission import needs, route_check
from runvitals.server.charts.overlay.axis import METRIC, Axis, Extract
from runvitals.server.charts.overlay.lines import COLUMNS, KeyLines, grouped_lines, rows_of
from runvitals.server.charts.overlay.plan import MetricNames
from runvitals.server.charts.overlay.run_reading import RunReading
from runvitals.server.charts.routes import overlay_models as models
from runvitals.server.http.csv_response import csv_response
from runvitals.server.http.errors import answering
from runvitals.server.http.immediate import immediate
from runvitals.server.http.open_streams import EventStream
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response, problem_headers
from runvitals.server.http.router import Router
from runvitals.server.http.workers import DEADLINE_S
from runvitals.server.library.run_library import Library, NamedRun
from runvitals.server.live import changed_runs
from runvitals.server.live.changed_runs import ChangedRuns
from runvitals.server.runs.routes.parameters import TheLibrary, requested_place
from runvitals.server.services import services_of

T = TypeVar("T")
router = Router(prefix="/overlay", responses=INVALID_PARAMETER)
MAX_RUNS = 100
_FARTHEST = 2.0**53

RunIds = Annotated[
    list[str],
    Query(description="Ids of the runs, in the order of the response.", min_length=1, max_length=MAX_RUNS),
]
TheProjectFilter = Annotated[Filter, Depends(requested_place)]
Place = Annotated[float | None, Query(ge=-_FARTHEST, le=_FARTHEST, allow_inf_nan=False)]
Extremes = Annotated[bool, Query(description="With `min`, `max` and `n` of each point.")]
OverlayFormat = Annotated[
    Literal["json", "csv"],
    Query(description="As a table, a row has `key`, `run`, `name`, `x`, `value`, `min`, `max` and `n`."),
]


class RequestedRuns:
    """The runs that a request names, as far as they may be read."""

    def __init__(self, library: Library, ids: Sequence[str], project_filter: Filter) -> None:
        self._library = library
        self._ids = list(dict.fromkeys(ids))
        self._project_filter = project_filter
        self.reading = RunReading(())

    async def find(self) -> list[NamedRun]:
        """Look the runs up."""
        ids = [run_id for run_id in self._ids if _can_be_id(run_id)]
        runs = await self._library.named(ids, self._project_filter)
        self.reading = RunReading(runs)
        return runs

    def restrict(self, readable: ReadableRuns | None) -> None:
        """Find only these from now on; None: all."""
        self._project_filter = replace(self._project_filter, readable=readable)

    def as_json(self) -> dict[str, Any]:
        """Return the fields `runs` and `missing`."""
        names = ("id", "name", "state", "started_ms", "end_ms")
        ids = {run.id for run in self.reading.runs}
        return {
            "runs": [{name: getattr(run, name) for name in names} for run in self.reading.runs],
            "missing": [run_id for run_id in self._ids if run_id not in ids],
        }


def _can_be_id(text: str) -> bool:
    try:
        check_run_id(text)
    except ValueError:
        return False
    return True


async def requested_runs(
    library: TheLibrary, runs: RunIds, project_filter: TheProjectFilter
) -> RequestedRuns:
    """Return the runs that a request names."""
    requested = RequestedRuns(library, runs, project_filter)
    await requested.find()
    return requested


TheRuns = Annotated[RequestedRuns, Depends(requested_runs)]


TheScale = Annotated[
    Literal["linear", "log"],
    Query(
        description="`log`: buckets are about equally wide in log10 of x, at least 20 a decade; `width` is "
        "in decades, and what has no positive x is left out."
    ),
]


@immediate
def requested_part(
    points: Annotated[int, Query(ge=2, le=2000, description="Of each line, at most.")] = 300,
    x0: Place = None,
    x1: Place = None,
    width: Annotated[
        float | None,
        Query(
            description="Of the buckets, as another response had it; instead of `points`.",
            gt=0,
            le=_FARTHEST,
            allow_inf_nan=False,
        ),
    ] = None,
    scale: TheScale = "linear",
) -> Extract:
    """Return which part of x is requested; `x0` and `x1` are included."""
    if x0 is not None and x1 is not None and x1 < x0:
        raise HTTPException(422, f"x1 ({x1:g}) is before x0 ({x0:g})")
    return Extract(points, x0, x1, width, scale == "log")


ThePart = Annotated[Extract, Depends(requested_part)]


def requested_axis(text: str, *kinds: str) -> Axis:
    """Return the axis of this name, or raise 422 if it is not of one of these kinds."""
    with answering(422):
        axis = Axis.parse(text)
    if axis.kind not in kinds:
        raise HTTPException(422, f"x={text!r}: expected {' or '.join(kinds)}")
    return axis


@router.get("/plan", needs("filtered run:read"), response_model=models.OverlayPlan)
async def overlay_plan(request: Request, runs: TheRuns) -> Response:
    """Which metrics some runs have."""
    names = MetricNames()
    await runs.reading.each(lambda run, view: names.add(view), quick=True)
    body = await run_in_threadpool(lambda: json_bytes({**runs.as_json(), **names.as_json()}))
    return await json_response(request, body)


@router.get("/logged", needs("filtered run:read"), response_model=models.Overlay)
async def overlay_logged(
    request: Request,
    runs: TheRuns,
    part: ThePart,
    keys: Annotated[list[str], Query(description="Names that were logged.", min_length=1, max_length=100)],
    x: Annotated[
        str,
        Query(
            description="`step`, `relative` (ms since the start of each run), `wall` (ms UTC), or "
            f"`{METRIC}<name>`: the values that the process logged under another name at the same step.",
            max_length=600,
        ),
    ] = "step",
    extremes: Extremes = True,
    format: OverlayFormat = "json",
) -> Response:
    """Logged numbers of several runs: by name, a line of each run. Ranks are reduced to their mean.

    Where the runs have few values, these are returned, otherwise buckets, which are the same for all runs and
    in every response with the same `width`. The value of a bucket is the mean of its values; of ranks, the
    mean of their means.
    """
    axis = requested_axis(x, "step", "relative", "wall", "metric")
    with _as_422():
        read_lines = await runs.reading.logged(keys, axis, part)
    return await _response(request, runs, read_lines, x, extremes, format)


@router.get("/system", needs("filtered run:read"), response_model=models.Overlay)
async def overlay_system(
    request: Request,
    runs: TheRuns,
    part: ThePart,
    keys: Annotated[
        list[str],
        Query(
            description="Keys, globs or templates of metrics (`gpu.{i}.temp`). The series that one of them "
            "matches are reduced to one line.",
            min_length=1,
            max_length=100,
        ),
    ],
    x: Annotated[
        str,
        Query(description="`relative` (ms since the start of each run) or `wall` (ms UTC).", max_length=600),
    ] = "relative",
    extremes: Extremes = True,
    format: OverlayFormat = "json",
) -> Response:
    """Sampled metrics of several runs: by key, a line of each run: the mean of its devices and hosts.

    The buckets are those of `/runs/{run}/metrics`: they begin at multiples of their width since 1970. With
    `x=relative`, x is counted from the beginning of the bucket in which the run started. `min` and `max` are
    the extremes of all devices in a bucket. With `scale=log`, which `x=relative` has, buckets get wider with
    the time since the start of each run.
    """
    axis = requested_axis(x, "relative", "wall")
    with _as_422():
        read_lines = await runs.reading.system(keys, axis, part)
    return await _response(request, runs, read_lines, x, extremes, format)


@contextmanager
def _as_422() -> Iterator[None]:
    """Raise 422 for a ValueError: an invalid parameter, or too much."""
    with answering(422):
        yield


async def _response(
    request: Request,
    runs: RequestedRuns,
    read_lines: Callable[[], Iterable[KeyLines]],
    x: str,
    extremes: bool,
    format: Literal["json", "csv"],
) -> Response:
    """Lines as a response; they are computed and encoded in a thread."""

    def encode() -> bytes:
        keys = [
            {"key": key, "width": width, "groups": grouped_lines(lines, extremes)}
            for key, width, lines in read_lines()
        ]
        return json_bytes({"x": x, **runs.as_json(), "keys": keys, "problems": list(runs.reading.problems)})

    def table() -> Response:
        names = {run.id: run.name for run in runs.reading.runs}
        return csv_response(COLUMNS, (row for lines in read_lines() for row in rows_of(lines, names)))

    with _as_422():
        if format == "csv":
            response = await in_time(table)
            response.headers.update(problem_headers(runs.reading.problems))
            return response
        return await json_response(request, await in_time(encode))


async def in_time(work: Callable[[], T]) -> T:
    """Return the result of work in a thread, with a deadline."""

    def timed() -> T:
        with deadline.within(DEADLINE_S):
            return work()

    return await run_in_threadpool(timed)


@router.get(
    "/live",
    needs("filtered run:read"),
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
    description=changed_runs.__doc__,
)
async def overlay_live(request: Request, runs: TheRuns) -> EventStream:
    """Stream the ids of the runs that have changed."""
    services, changes = services_of(request), ChangedRuns(runs.find)

    def follow(readable: ReadableRuns | None) -> None:
        runs.restrict(readable)
        changes.find_again()

    access = route_check(request)
    if access is not None:
        access.follow_readable_runs(request, follow)
    await changes.changed_ids()  # a page requests what is there as soon as its stream is open
    events = changed_runs.stream(changes, services.closing)
    return EventStream(request, services.open_streams, events)
