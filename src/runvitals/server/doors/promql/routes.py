"""The routes of Prometheus' query API: Grafana's data source is `http://SERVER/prometheus`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from fastapi import Request
from starlette.responses import Response

import runvitals
from runvitals.base.deadline import TooSlow
from runvitals.server.access.permission import needs
from runvitals.server.doors.promql import queries
from runvitals.server.doors.promql.lexer import duration_ms
from runvitals.server.doors.promql.parser import parse
from runvitals.server.doors.promql.series_source import SeriesSource
from runvitals.server.doors.promql.syntax import QueryError
from runvitals.server.doors.promql.texts import text_of
from runvitals.server.doors.promql.tree import tree_of
from runvitals.server.error_table import meaning_of
from runvitals.server.http.router import Router
from runvitals.server.http.workers import Busy
from runvitals.server.runs.routes.parameters import readable_runs
from runvitals.server.services import shared_services_of

router: Final = Router(prefix="/prometheus")
_API: Final = "/api/v1"
_STATUSES: Final = {"bad_data": 400, "execution": 422, "timeout": 503}
_DAY_MS: Final = 86_400_000
_encode: Final = msgspec.json.Encoder().encode
_EXPECTED_TIME = "expected a number of seconds, or a time such as 2026-01-31T12:00:00Z"

Parameters = dict[str, list[str]]


async def _respond(request: Request, work: Callable[[SeriesSource, Parameters], Any]) -> Response:
    server = shared_services_of(request).promql()
    try:
        parameters = await _parameters(request)
        data = await server.workers.run(lambda: work(server.source(readable_runs(request)), parameters))
    except (QueryError, TooSlow, Busy) as error:
        return _error_response(error)
    return _success_response(data)


def _success_response(data: Any) -> Response:
    return Response(_encode({"status": "success", "data": data}), media_type="application/json")


def _error_response(error: Exception) -> Response:
    """Return an error of a query, or what another one means, in the form of Prometheus."""
    if isinstance(error, QueryError):
        return _failure_response(_STATUSES[error.kind], error.kind, str(error))
    meaning = meaning_of(error)
    text = "query timed out: narrow the selector or the time" if isinstance(error, TooSlow) else meaning.text
    return _failure_response(meaning.status, "timeout", text, meaning.headers)


def _failure_response(
    status: int, kind: str, text: str, headers: Mapping[str, str] | None = None
) -> Response:
    body = {"status": "error", "errorType": kind, "error": text}
    return Response(_encode(body), status, headers, "application/json")


async def _parameters(request: Request) -> Parameters:
    """Return the parameters of the address, and those of a form in the body."""
    try:
        parameters = parse_qs(request.url.query, max_num_fields=1000)
    except ValueError:
        raise QueryError("the parameters in the address are not valid") from None
    if request.method == "POST":
        try:
            form = (await request.body()).decode("utf-8")
            for name, values in parse_qs(form, max_num_fields=1000).items():
                parameters.setdefault(name, []).extend(values)
        except ValueError:
            raise QueryError("the form in the body is not valid") from None
    return parameters


def _required(parameters: Parameters, name: str) -> str:
    values = parameters.get(name)
    if not values:
        raise QueryError(f'invalid parameter "{name}": it is missing')
    return values[0]


def _time(parameters: Parameters, name: str, default: int | None = None) -> int:
    """Return a time, ms UTC: seconds since 1970, or as in RFC 3339."""
    if default is not None and name not in parameters:
        return default
    text = _required(parameters, name)
    try:
        return queries.milliseconds(float(text), name)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise QueryError(f'invalid parameter "{name}": {text[:50]!r}; {_EXPECTED_TIME}') from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return queries.milliseconds(moment.timestamp(), name)


def _step(parameters: Parameters) -> int:
    text = _required(parameters, "step")
    try:
        return queries.milliseconds(float(text), "step")
    except ValueError:
        return duration_ms(text)


def _query(now_ms: int, source: SeriesSource, parameters: Parameters) -> Any:
    return queries.query(source, _required(parameters, "query"), _time(parameters, "time", now_ms))


def _query_range(source: SeriesSource, parameters: Parameters) -> Any:
    start, end = _time(parameters, "start"), _time(parameters, "end")
    return queries.query_range(source, _required(parameters, "query"), start, end, _step(parameters))


def _span(parameters: Parameters, now_ms: int) -> tuple[list[str], int, int]:
    """Return the selectors, and the times; the last day by default."""
    end = _time(parameters, "end", now_ms)
    return parameters.get("match[]", []), _time(parameters, "start", end - _DAY_MS), end


@router.get(f"{_API}/query", needs("filtered run:read"), include_in_schema=False)
@router.post(f"{_API}/query", needs("filtered run:read"), include_in_schema=False)
async def query(request: Request) -> Response:
    """Evaluate an expression at one time."""
    return await _respond(request, partial(_query, shared_services_of(request).promql().clock()))


@router.get(f"{_API}/query_range", needs("filtered run:read"), include_in_schema=False)
@router.post(f"{_API}/query_range", needs("filtered run:read"), include_in_schema=False)
async def query_range(request: Request) -> Response:
    """Evaluate an expression over a range of time."""
    return await _respond(request, _query_range)


@router.get(f"{_API}/series", needs("filtered run:read"), include_in_schema=False)
@router.post(f"{_API}/series", needs("filtered run:read"), include_in_schema=False)
async def series(request: Request) -> Response:
    """Return the labels of series."""
    return await _respond_with_list(request, queries.series)


@router.get(f"{_API}/labels", needs("filtered run:read"), include_in_schema=False)
@router.post(f"{_API}/labels", needs("filtered run:read"), include_in_schema=False)
async def labels(request: Request) -> Response:
    """Return the names of labels."""
    return await _respond_with_list(request, queries.labels)


@router.get(f"{_API}/label/{{label}}/values", needs("filtered run:read"), include_in_schema=False)
async def label_values(request: Request, label: str) -> Response:
    """Return the values of a label."""
    return await _respond_with_list(request, lambda source, *span: queries.label_values(source, label, *span))


@router.get(f"{_API}/query_exemplars", needs("filtered run:read"), include_in_schema=False)
@router.post(f"{_API}/query_exemplars", needs("filtered run:read"), include_in_schema=False)
async def exemplars(request: Request) -> Response:
    """Return no exemplars: none are stored."""
    return await _respond(
        request, lambda source, parameters: queries.exemplars(_required(parameters, "query"))
    )


@router.get(f"{_API}/metadata", needs("authenticated"), include_in_schema=False)
async def metadata(request: Request) -> Response:
    """Return kinds and descriptions of metrics."""

    def read(source: SeriesSource, parameters: Parameters) -> Any:
        name = parameters["metric"][0] if "metric" in parameters else None
        return queries.metadata(name, _limit(parameters))

    return await _respond(request, read)


@router.get(f"{_API}/rules", needs("authenticated"), include_in_schema=False)
async def rules() -> Response:
    """Return no rules, which Grafana lists for its data sources: ours are not written in PromQL."""
    return _success_response({"groups": []})


@router.get(f"{_API}/alerts", needs("authenticated"), include_in_schema=False)
async def alerts() -> Response:
    """Return no alerts, because there are no such rules."""
    return _success_response({"alerts": []})


@router.get(f"{_API}/status/buildinfo", needs("authenticated"), include_in_schema=False)
async def build_info(request: Request) -> Response:
    """Return the version, from which Grafana knows what it can request."""
    return _success_response(
        {"version": "2.42.0", "application": "runvitals", "revision": runvitals.__version__}
    )


@router.get(f"{_API}/status/flags", needs("authenticated"), include_in_schema=False)
async def flags() -> Response:
    """Return no flags: this is not Prometheus, but Grafana asks for them."""
    return _success_response({})


@router.get(f"{_API}/status/config", needs("authenticated"), include_in_schema=False)
async def config() -> Response:
    """Return an empty configuration: nothing is scraped."""
    return _success_response({"yaml": ""})


@router.get(f"{_API}/status/runtimeinfo", needs("authenticated"), include_in_schema=False)
async def runtime_info() -> Response:
    """Return what Grafana shows of a server; nothing about the process."""
    return _success_response({"reloadConfigSuccess": True, "storageRetention": ""})


@router.get(f"{_API}/status/tsdb", needs("authenticated"), include_in_schema=False)
async def tsdb() -> Response:
    """Return no statistics of the store, of whose series each requester may read others."""
    names = ("seriesCountByMetricName", "labelValueCountByLabelName", "memoryInBytesByLabelName")
    head = {"numSeries": 0, "numLabelPairs": 0, "chunkCount": 0, "minTime": 0, "maxTime": 0}
    lists: dict[str, Any] = {key: [] for key in (*names, "seriesCountByLabelValuePair")}
    return _success_response({"headStats": head, **lists})


@router.get(f"{_API}/targets", needs("authenticated"), include_in_schema=False)
async def targets() -> Response:
    """Return no targets: nothing is scraped."""
    return _success_response({"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}})


@router.get(f"{_API}/format_query", needs("authenticated"), include_in_schema=False)
@router.post(f"{_API}/format_query", needs("authenticated"), include_in_schema=False)
async def format_query(request: Request) -> Response:
    """Return a query with usual spaces and only the parentheses that it needs; or what is wrong with it."""
    return await _respond(request, lambda source, parameters: text_of(parse(_required(parameters, "query"))))


@router.get(f"{_API}/parse_query", needs("authenticated"), include_in_schema=False)
@router.post(f"{_API}/parse_query", needs("authenticated"), include_in_schema=False)
async def parse_query(request: Request) -> Response:
    """Return the syntax tree of a query; or what is wrong with it."""
    return await _respond(request, lambda source, parameters: tree_of(parse(_required(parameters, "query"))))


@router.api_route(
    f"{_API}/{{rest:path}}", needs("authenticated"), methods=["GET", "POST"], include_in_schema=False
)
async def not_supported(request: Request, rest: str) -> Response:
    """Refuse what Prometheus has besides: with an error for clients, not the page for people."""
    return _failure_response(404, "not_found", f"{request.method} {request.url.path[:200]} is not supported")


@router.get("/federate", needs("filtered run:read"), include_in_schema=False)
async def federate(request: Request) -> Response:
    """Return the newest samples of series in the text format, for a Prometheus that scrapes this server."""
    server = shared_services_of(request).promql()
    now_ms = server.clock()

    def newest(source: SeriesSource, parameters: Parameters) -> bytes:
        return queries.federated(source, parameters.get("match[]", []), now_ms)

    try:
        parameters = await _parameters(request)
        body = await server.workers.run(lambda: newest(server.source(readable_runs(request)), parameters))
    except (QueryError, TooSlow, Busy) as error:
        return _error_response(error)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


Listing = Callable[[SeriesSource, list[str], int, int], list[Any]]


async def _respond_with_list(request: Request, find: Listing) -> Response:
    """Return a list of what the series between two times have, as many as are asked for."""
    now_ms = shared_services_of(request).promql().clock()

    def read(source: SeriesSource, parameters: Parameters) -> Any:
        return find(source, *_span(parameters, now_ms))[: _limit(parameters)]

    return await _respond(request, read)


def _limit(parameters: Parameters) -> int | None:
    """Return how many are asked for; None: all."""
    text = parameters.get("limit", [""])[0]
    limit = int(text[:9]) if text.isascii() and text.isdigit() else 0
    return limit or None
