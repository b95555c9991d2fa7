"""`/hosts`: which hosts there are, who is running where, and how their devices do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, Protocol

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.durations import DAY_MS
from runvitals.server.access.permission import needs
from runvitals.server.hosts.host_charts import MAX_RUNS, host_series
from runvitals.server.hosts.hosts import FLAGS, Flag, FleetHost, HostLibrary, HostRun, HostState
from runvitals.server.hosts.routes import host_models
from runvitals.server.http.bodies import ErrorAnswer
from runvitals.server.http.errors import answering
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import Library, SeriesSelection
from runvitals.server.runs.routes.parameters import Keys, MaxPoints, Millis, TheReadableRuns, the_library

_ERRORS: dict[int | str, dict[str, Any]] = {
    **INVALID_PARAMETER,
    404: {"model": ErrorAnswer, "description": "There is no such host, or it may not be known."},
}
_MAX_SPAN_MS = 400 * DAY_MS
HostName = Annotated[str, Path(description="The host's name.", max_length=256)]
Sort = Literal["name", "attention", "use", "power", "temperature", "last_ms"]


class HostsOfLibrary(Library, HostLibrary, Protocol):
    """A library that also knows the hosts of its runs: both kinds do."""


TheLibrary = Annotated[HostsOfLibrary, Depends(the_library)]

router = Router()


@router.get(
    "/hosts", needs("filtered run:read"), response_model=host_models.FleetPage, responses=INVALID_PARAMETER
)
async def hosts(
    request: Request,
    library: TheLibrary,
    readable: TheReadableRuns,
    text: Annotated[
        str,
        Query(
            description="Every word of it occurs in the name of the host, or the name, id, project or author "
            "of one of its runs.",
            max_length=1000,
        ),
    ] = "",
    state: Annotated[list[HostState] | None, Query(description="Only in these states.")] = None,
    flag: Annotated[list[Flag] | None, Query(description="Only with one of these flags.")] = None,
    sort: Annotated[
        Sort, Query(description="`attention`: lost, throttled, hot and idle ones first.")
    ] = "name",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the previous page.", max_length=20)] = None,
) -> Response:
    """The hosts of the last 7 days with their devices as they are now."""
    begin = _offset(after)
    fleet = await library.hosts(readable)

    def encode() -> bytes:
        words = text.casefold().split()
        matching = [
            host
            for host in fleet
            if (not state or host.state in state)
            and (not flag or not set(flag).isdisjoint(host.flags))
            and _has_words(host, words)
        ]
        matching.sort(key=_ORDERS[sort])  # hosts are in order of their names, and sorting is stable
        end = begin + limit
        return json_bytes(
            {
                "hosts": [_host(host) for host in matching[begin:end]],
                "total": len(matching),
                "next": str(end) if end < len(matching) else None,
                "totals": _totals(matching),
            }
        )

    return await json_response(request, await run_in_threadpool(encode))


@router.get(
    "/hosts/{host:path}/metrics",
    needs("filtered run:read"),
    response_model=host_models.HostSeries,
    responses=_ERRORS,
)
async def host_metrics(
    request: Request,
    library: TheLibrary,
    readable: TheReadableRuns,
    host: HostName,
    keys: Keys = [],  # noqa: B006
    t0: Millis = None,
    t1: Millis = None,
    max_points: MaxPoints = 500,
) -> Response:
    """Series of a host in buckets, over all runs that were on it: `t0` is a day ago by default."""
    start, end = _span(library, t0, t1, DAY_MS)
    runs = await _runs_on(library, host, start, end, MAX_RUNS + 1, readable)
    with answering(422):
        body = await host_series(library, runs, SeriesSelection(tuple(keys), host), start, end, max_points)
    return await json_response(request, await run_in_threadpool(json_bytes, body))


@router.get(
    "/hosts/{host:path}", needs("filtered run:read"), response_model=host_models.HostDetail, responses=_ERRORS
)
async def one_host(
    request: Request,
    library: TheLibrary,
    readable: TheReadableRuns,
    host: HostName,
    t0: Millis = None,
    t1: Millis = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    after: Annotated[str | None, Query(description="`next` of the previous page.", max_length=20)] = None,
) -> Response:
    """A host as it is now, and the runs on it from `t0` (by default 7 days ago) to `t1`."""
    start, end = _span(library, t0, t1, 7 * DAY_MS)
    begin = _offset(after)
    runs = await _runs_on(library, host, start, end, begin + limit + 1, readable)
    now = next((each for each in await library.hosts(readable) if each.name == host), None)
    body = {
        "host": None if now is None else _host(now),
        "name": host,
        "t0": start,
        "t1": end,
        "runs": [_run(run) for run in runs[begin : begin + limit]],
        "next": str(begin + limit) if len(runs) > begin + limit else None,
    }
    return await json_response(request, await run_in_threadpool(json_bytes, body))


async def _runs_on(
    library: HostsOfLibrary, host: str, t0: int, t1: int, limit: int, readable: Any
) -> Sequence[HostRun]:
    runs = await library.host_runs(host, t0, t1, limit, readable)
    if runs is None:
        raise HTTPException(404, f"there is no host {host!r}")
    return runs


def _span(library: Library, t0: int | None, t1: int | None, default_ms: int) -> tuple[int, int]:
    end = library.clock() if t1 is None else t1
    start = end - default_ms if t0 is None else t0
    if not 0 <= end - start <= _MAX_SPAN_MS:
        raise HTTPException(422, f"t0={start}, t1={end}: expected t0 before t1, at most 400 days apart")
    return start, end


def _offset(after: str | None) -> int:
    if after is None:
        return 0
    if not (after.isascii() and after.isdigit() and len(after) < 10):
        raise HTTPException(422, f"after={after[:60]!r}: expected `next` of the previous page")
    return int(after)


def _has_words(host: FleetHost, words: Sequence[str]) -> bool:
    if not words:
        return True
    texts = [host.name]
    for run in host.runs:
        texts += [run.name, run.id, run.project, run.entity or ""]
        texts += [run.author.name or "", run.author.display_name] if run.author is not None else []
    text = "\n".join(texts).casefold()
    return all(word in text for word in words)


def _mean_use(host: FleetHost) -> float:
    """Hosts without a device come last."""
    used = [device.use for device in host.devices if device.use is not None]
    return sum(used) / len(used) if used else float("inf")


def _highest(host: FleetHost, name: str) -> float:
    return max((getattr(device, name) or 0.0 for device in host.devices), default=0.0)


_ORDERS: dict[str, Callable[[FleetHost], Any]] = {
    "name": lambda host: 0,
    "attention": lambda host: [flag not in host.flags for flag in FLAGS],
    "use": _mean_use,
    "power": lambda host: -sum(device.power or 0.0 for device in host.devices),
    "temperature": lambda host: -_highest(host, "temperature"),
    "last_ms": lambda host: -host.last_ms,
}
"""How hosts are sorted. By use the least used come first: they are what one looks for."""


def _totals(hosts: Sequence[FleetHost]) -> dict[str, Any]:
    devices = [device for host in hosts for device in host.devices]
    used = [device.use for device in devices if device.use is not None]
    power = [device.power for device in devices if device.power is not None]
    totals: dict[str, Any] = {"running": 0, "lost": 0, "ended": 0}
    for host in hosts:
        totals[host.state] += 1
    totals |= {"devices": len(devices), "use": sum(used) / len(used) if used else None}
    totals["power"] = sum(power) if power else None
    return totals | {
        flag: sum(flag in device.flags for device in devices) for flag in ("idle", "throttled", "hot")
    }


def _host(host: FleetHost) -> dict[str, Any]:
    return {**asdict(host), "runs": [_run(run) for run in host.runs]}


def _run(run: HostRun) -> dict[str, Any]:
    fields = asdict(run)
    del fields["number"]
    return fields
