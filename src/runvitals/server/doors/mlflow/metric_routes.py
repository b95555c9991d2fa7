"""The routes that log and read metrics: `runs/log-…` and `metrics/get-history…`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fastapi import Request
from starlette.responses import Response

from runvitals.server.doors.mlflow import logged_model_writes
from runvitals.server.doors.mlflow.door import NO_METRICS
from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.limits import (
    MAX_METRICS,
    check_counts,
    checked_param,
    sent_params,
    sent_tags,
)
from runvitals.server.doors.mlflow.metric_columns import MetricColumns, SentBatch
from runvitals.server.doors.mlflow.metric_history import MetricValues, points_json
from runvitals.server.doors.mlflow.pages import offset, query_of, token
from runvitals.server.doors.mlflow.requests import (
    SentMessage,
    TheMessage,
    encode,
    mlflow_router,
    parse_message,
    to_response,
)
from runvitals.server.doors.mlflow.run_reads import RunReads
from runvitals.server.doors.mlflow.run_routes import READS, SENDS, existing, run_id_of
from runvitals.server.doors.mlflow.run_writes import RunWrites
from runvitals.server.doors.mlflow.runs import TheRuns
from runvitals.server.http.responses import json_response
from runvitals.server.service_parameters import door_recorder
from runvitals.server.services import shared_services_of

PAGE: Final = 25_000
MAX_HISTORY: Final = 250_000
"""Values in a response to who asks for all."""
MAX_BULK: Final = 25_000
MAX_RUNS: Final = 100
INTERVALS: Final = 320
MAX_INTERVALS: Final = 2500
MIN_RESERVED: Final = 1 << 20

router: Final = mlflow_router()
first: Final = mlflow_router()
"""The route of batches, which comes before the others: finding the last of them takes longer than storing 100
metrics."""


@router.post("/runs/log-metric", *SENDS)
async def log_metric(sent: TheMessage, request: Request) -> Response:
    """Store a value of a metric."""
    run_id = run_id_of(sent)
    writes = RunWrites(request)
    metric = writes.door.to_stored(MetricColumns.of_objects([sent.values]))
    session = await writes.session(run_id)
    of_models = logged_model_writes.in_messages(session.uid, [sent.values])
    await logged_model_writes.check(request, of_models)
    await writes.log(session, metric, {}, {}, 100)
    await logged_model_writes.record(request, of_models)
    return to_response({})


@router.post("/runs/log-parameter", *SENDS)
async def log_parameter(sent: TheMessage, request: Request) -> Response:
    """Store a parameter."""
    run_id = run_id_of(sent)
    key, value = checked_param(sent.values.get("key"), sent.values.get("value"))
    writes = RunWrites(request)
    session = await writes.session(run_id)
    await writes.log(session, NO_METRICS, {key: value}, {}, 100)
    return to_response({})


@first.post("/runs/log-batch", *SENDS)
async def log_batch(request: Request) -> Response:
    """Store metrics, parameters and tags of a run."""
    body = await request.body()
    with door_recorder(request).in_flight(max(MIN_RESERVED, len(body))):
        run_id, metrics, params, tags = _batch(body)
        writes = RunWrites(request)
        stored = writes.door.to_stored(metrics)
        session = await writes.session(run_id)
        of_models = logged_model_writes.in_batch(body)
        await logged_model_writes.check(request, of_models)
        await writes.log(session, stored, params, tags, len(body))
        await logged_model_writes.record(request, of_models)
    return to_response({})


def _batch(body: bytes) -> tuple[str, MetricColumns, dict[str, str], dict[str, str]]:
    """Return the run, metrics, parameters and tags of a `log-batch`.

    Raises:
        MlflowError: 400.
    """
    batch = SentBatch.decode(body)
    if batch is not None and batch.run_id and len(batch.metrics) <= MAX_METRICS:
        columns = MetricColumns.of_batch(batch.metrics)
        if columns is not None:
            rest = SentMessage({"params": batch.params, "tags": batch.tags})
            params, tags = sent_params(rest), sent_tags(rest)
            check_counts(len(batch.metrics), len(batch.params or ()), len(batch.tags or ()))
            return batch.run_id, columns, params, tags
    sent = parse_message(body)
    metrics, params, tags = sent.objects("metrics"), sent_params(sent), sent_tags(sent)
    check_counts(len(metrics), len(sent.objects("params")), len(sent.objects("tags")))
    return run_id_of(sent), MetricColumns.of_objects(metrics, "metrics"), params, tags


@router.get("/metrics/get-history", *READS)
async def history(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Return a page of the values of a metric."""
    name = sent.required("metric_key")
    most = sent.integer("max_results")
    if most is not None and most <= 0:
        raise invalid(
            f"Invalid value {most} for parameter 'max_results' supplied. It must be a positive integer"
        )
    query = query_of(sent)
    first = offset(sent.text("page_token"), query)
    number = await existing(runs, run_id_of(sent))
    most = MAX_HISTORY if most is None else min(most, PAGE)
    values, end = await RunReads(request).history_page(number, name, first, most)
    more = {"next_page_token": token(end, query)} if end < len(values.values) else {}
    return await _respond(request, name, [_Selection(values, range(min(first, end), end))], more)


@router.get("/metrics/get-history-bulk", *READS)
async def history_bulk(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Return all values of a metric of several runs, for pages."""
    ids = sent.texts("run_id")
    _check_runs(ids)
    name = sent.text("metric_key")
    if not name:
        raise invalid("GetMetricHistoryBulk request must specify a metric_key.")
    most = min(sent.integer("max_results") or MAX_BULK, MAX_BULK)
    selections: list[_Selection] = []
    for run_id in ids:
        values = await RunReads(request).history(await existing(runs, run_id), name)
        end = min(len(values.values), most)
        selections.append(_Selection(values, range(end), run_id))
        most -= end
    return await _respond(request, name, selections)


@router.get("/metrics/get-history-bulk-interval", *READS)
async def history_intervals(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Return values of a metric of several runs at the same steps, at most `max_results` for each run.

    Evenly spaced ones, with the first, the last, the lowest and the highest value.
    """
    ids = sent.texts("run_ids")
    if not ids:
        raise invalid("Missing value for required parameter 'run_ids'.")
    if len(ids) > MAX_RUNS:
        raise invalid(f"GetMetricHistoryBulkInterval request must specify at most {MAX_RUNS} run_ids.")
    name = sent.required("metric_key")
    most = sent.integer("max_results")
    if most is None:
        most = INTERVALS
    if not 1 <= most <= MAX_INTERVALS:
        raise invalid(f"max_results must be between 1 and {MAX_INTERVALS}")
    start, end = sent.integer("start_step"), sent.integer("end_step")
    if (start is None) != (end is None):
        raise invalid("If either start step or end step are specified, both must be specified.")
    if start is not None and end is not None and start > end:
        raise invalid(f"end_step must be greater than start_step. Found start_step={start}, end_step={end}.")
    selections: list[_Selection] = []
    for run_id in ids:
        values = await RunReads(request).history(await existing(runs, run_id), name)
        selections.append(_Selection(values, values.spaced_indices(most, start, end), run_id))
    return await _respond(request, name, selections)


class _Selection(NamedTuple):
    """Some values of a metric, by their indices, and the run to name with them."""

    values: MetricValues
    indices: Iterable[int]
    run_id: str | None = None


async def _respond(
    request: Request, name: str, selections: Sequence[_Selection], more: Mapping[str, str] | None = None
) -> Response:
    """Return a response with values of a metric. It is put together in a thread: 25,000 take 0.1 s."""

    def put_together() -> bytes:
        metrics: list[dict[str, Any]] = []
        for values, indices, run_id in selections:
            points = points_json(name, values, indices)
            metrics += points if run_id is None else [{**point, "run_id": run_id} for point in points]
        return encode({"metrics": metrics, **(more or {})})

    door = shared_services_of(request).mlflow_door()
    return await json_response(request, await door.workers.run(put_together))


def _check_runs(ids: list[str]) -> None:
    if not ids:
        raise invalid("GetMetricHistoryBulk request must specify at least one run_id.")
    if len(ids) > MAX_RUNS:
        raise invalid(
            f"GetMetricHistoryBulk request cannot specify more than {MAX_RUNS} run_ids. "
            f"Received {len(ids)} run_ids."
        )
