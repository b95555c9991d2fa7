"""`runs/…`: begin, read, change, end, delete and search runs."""

from __future__ import annotations

import json
import uuid
from functools import partial
from typing import Any, Final

import anyio.to_thread
from fastapi import Request
from starlette.responses import Response

from runvitals.model import json_values
from runvitals.model.errors import UnknownRun
from runvitals.sdk.run_names import names_of
from runvitals.server.access.permission import needs, recording
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError, invalid, unknown_run
from runvitals.server.doors.mlflow.experiment_routes import MAX_PAGE
from runvitals.server.doors.mlflow.limits import checked_tag, sent_tags
from runvitals.server.doors.mlflow.pages import max_results, query_of
from runvitals.server.doors.mlflow.requests import SentMessage, TheMessage, mlflow_router, to_response
from runvitals.server.doors.mlflow.run_reads import RunReads
from runvitals.server.doors.mlflow.run_search import RunSearch, RunSearcher
from runvitals.server.doors.mlflow.run_writes import RunWrites
from runvitals.server.doors.mlflow.runs import NAME_TAG, STATUS_NUMBERS, STATUSES, Runs, TheRuns, not_active
from runvitals.server.doors.mlflow.search_text import RUN_ATTRIBUTES, parse_filter, parse_order
from runvitals.server.service_parameters import access_of, door_recorder
from runvitals.server.services import shared_services_of

DEFAULT_PAGE: Final = 1000
HISTORY_TAG: Final = "mlflow.log-model.history"
MAX_MODEL: Final = 65_535
MAX_MODELS: Final = 10
"""Newer clients keep their models as such: see `logged_model_routes`."""
_MODEL_FIELDS: Final = frozenset(("artifact_path", "flavors", "utc_time_created", "run_id"))
_VIEWS: Final = {"ACTIVE_ONLY": False, "DELETED_ONLY": True, "ALL": None}
_VIEW_NUMBERS: Final = {"1": "ACTIVE_ONLY", "2": "DELETED_ONLY", "3": "ALL"}
READS: Final = [needs("filtered run:read")]
# The body names the run: `Runs` and the rights of ingest decide.
SENDS: Final = [needs("filtered run:create")]
DELETES: Final = [needs("filtered run:delete")]
router: Final = mlflow_router()


def run_id_of(sent: SentMessage) -> str:
    """Return the run that a message names; clients send both names of the id."""
    return sent.text("run_uuid", most=256) or sent.required("run_id", most=256)


@router.post("/runs/create", *SENDS)
async def create(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Create a run."""
    tags = sent_tags(sent)
    name = sent.text("run_name") or tags.get(NAME_TAG) or next(names_of(uuid.uuid4().hex))
    if sent.text("run_name") and tags.get(NAME_TAG) not in (None, name):
        raise invalid(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values "
            f"(run_name='{name[:100]}', mlflow.runName='{tags[NAME_TAG][:100]}')."
        )
    experiment_id = sent.identifier("experiment_id") or "0"
    start_time = sent.integer("start_time")
    user_id = sent.text("user_id", most=256) or tags.get("mlflow.user", "")
    experiment = await anyio.to_thread.run_sync(runs.experiments.for_new_run, experiment_id)
    checked_tag(NAME_TAG, name)
    uid = await RunWrites(request).create(
        (experiment.entity, experiment.project), user_id, name, start_time, tags
    )
    run = await anyio.to_thread.run_sync(runs.find_own, uid)
    return to_response({"run": run.as_json(())})


@router.get("/runs/get", *READS)
async def get(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Return a run with the latest value of each metric."""
    run = await anyio.to_thread.run_sync(runs.find, run_id_of(sent))
    return to_response({"run": run.as_json(await RunReads(request).latest(run))})


@router.post("/runs/update", *SENDS)
async def update(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Change the status, end or name of a run."""
    status = sent.identifier("status")
    status = STATUS_NUMBERS.get(status or "", status)
    if status is not None and status not in STATUSES:
        raise invalid(f"Invalid value {status[:60]} for parameter 'status' supplied. Expected {STATUSES}.")
    name, end_time = sent.text("run_name"), sent.integer("end_time")
    if name:
        checked_tag(NAME_TAG, name)
    writes = RunWrites(request)
    session = await writes.session(run_id_of(sent))
    await writes.update(session, status, end_time, name)
    run = await anyio.to_thread.run_sync(runs.find_own, session.uid)
    if run.row.deleted_ms is not None:
        raise not_active(session.uid)
    return to_response({"run_info": run.info_json()})


@router.post("/runs/delete", *DELETES)
async def delete(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Move a run to the trash."""
    return await _set_deleted(run_id_of(sent), True, runs, request)


@router.post("/runs/restore", *DELETES)
async def restore(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Restore a run from the trash."""
    return await _set_deleted(run_id_of(sent), False, runs, request)


async def _set_deleted(run_id: str, deleted: bool, runs: Runs, request: Request) -> Response:
    """Move a run to the trash, or out of it."""
    number, is_deleted = await anyio.to_thread.run_sync(runs.stage, run_id)
    request.state.run_number = number
    if is_deleted == deleted:  # as in MLflow, nothing to do
        return to_response({})
    library = shared_services_of(request).library
    try:
        if deleted:
            await library.delete(run_id, number, recording(request, "run.delete"))
        else:
            await library.restore(run_id, number, recording(request, "run.restore"))
    except UnknownRun:  # another request may have been faster
        if (await anyio.to_thread.run_sync(runs.stage, run_id))[1] != deleted:
            raise
    door_recorder(request).note_deleted(number, deleted)
    return to_response({})


@router.post("/runs/set-tag", *SENDS)
async def set_tag(sent: TheMessage, request: Request) -> Response:
    """Set a tag of a run."""
    run_id = run_id_of(sent)
    key, value = checked_tag(sent.required("key"), sent.text("value") or "")
    writes = RunWrites(request)
    await writes.set_tags(await writes.session(run_id), {key: value})
    return to_response({})


@router.post("/runs/delete-tag", *SENDS)
async def delete_tag(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Delete a tag of a run."""
    key = sent.required("key")
    writes = RunWrites(request)
    session = await writes.session(run_id_of(sent))
    run = await anyio.to_thread.run_sync(runs.find_own, session.uid)
    if key not in run.tags:
        raise MlflowError(
            RESOURCE_DOES_NOT_EXIST, f"No tag with name: {key[:100]} in run with id {session.uid}"
        )
    await writes.delete_tag(session, key)
    return to_response({})


@router.post("/runs/log-model", *SENDS)
async def log_model(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Add what a client says of a model that it has logged to a tag, which has the newest ones."""
    run_id, model = run_id_of(sent), _model(sent.required("model_json", most=MAX_MODEL))
    writes = RunWrites(request)
    session = await writes.session(run_id)
    run = await anyio.to_thread.run_sync(runs.find_own, session.uid)
    history = json.dumps([*_models(run.tags.get(HISTORY_TAG, "")), model][-MAX_MODELS:])
    await writes.set_tags(session, {HISTORY_TAG: history})
    return to_response({})


def _model(text: str) -> dict[str, Any]:
    """Return the model that a client describes.

    Raises:
        MlflowError: it does not describe a model.
    """
    try:
        model = json_values.decode(text)
    except ValueError:
        model = None
    if not isinstance(model, dict):
        raise invalid(f"Malformed model info. \n {text[:200]} \n is not a valid JSON.")
    missing = sorted(_MODEL_FIELDS.difference(model))
    if missing:
        raise invalid(f"Model json is missing mandatory fields: {missing}")
    return model


def _models(history: str) -> list[Any]:
    try:
        models = json_values.decode(history) if history else []
    except ValueError:  # somebody has set the tag to something else
        return []
    return models if isinstance(models, list) else []


@router.post("/runs/search", *READS)
async def search(sent: TheMessage, runs: TheRuns, request: Request) -> Response:
    """Return a page of the runs that match a filter."""
    view = sent.identifier("run_view_type") or "ACTIVE_ONLY"
    view = _VIEW_NUMBERS.get(view, view)
    if view not in _VIEWS:
        raise invalid(f"Invalid value {view[:60]} for parameter 'run_view_type' supplied.")
    most = max_results(sent.integer("max_results"), DEFAULT_PAGE, MAX_PAGE)
    comparisons = parse_filter(sent.text("filter"), RUN_ATTRIBUTES)
    order = parse_order(sent.texts("order_by"), RUN_ATTRIBUTES)
    ids = sent.texts("experiment_ids")
    projects = await anyio.to_thread.run_sync(runs.experiments.numbers, ids)
    access = access_of(request)
    door = shared_services_of(request).mlflow_door()
    searcher = RunSearcher(
        access.metadata_store, runs, access.clock(), RunReads(request).latest, door.workers
    )
    run_search = RunSearch(
        projects, comparisons, order, _VIEWS[view], most, sent.text("page_token"), query_of(sent)
    )
    page = await searcher.search(run_search)
    more = {} if page.next_token is None else {"next_page_token": page.next_token}
    return to_response({"runs": [run.as_json(metrics) for run, metrics in page.runs], **more})


async def existing(runs: Runs, run_id: str) -> int:
    """Return the number of a run that the requester may read."""
    if not run_id:
        raise unknown_run(run_id)
    return await anyio.to_thread.run_sync(partial(runs.number, run_id))
