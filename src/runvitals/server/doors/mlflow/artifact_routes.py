"""Files of runs and logged models: `mlflow-artifacts/…` and the lists of a run's files.

A path is `EXPERIMENT/RUN/artifacts/…` or `EXPERIMENT/models/MODEL/artifacts/…`, as in the `mlflow-artifacts:`
addresses that clients get. There are no other paths.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import (
    RESOURCE_DOES_NOT_EXIST,
    MlflowError,
    invalid,
)
from runvitals.server.doors.mlflow.experiments import experiments_of
from runvitals.server.doors.mlflow.logged_models import LoggedModels
from runvitals.server.doors.mlflow.registry_files import (
    entries_below,
    is_registry_path,
    registry_file_response,
)
from runvitals.server.doors.mlflow.requests import TheMessage, mlflow_router, to_response
from runvitals.server.doors.mlflow.runs import find_run
from runvitals.server.files.routes.bucket_redirect import bucket_redirect
from runvitals.server.files.routes.incoming_file import PIECE_BYTES, Incoming, receive_file
from runvitals.server.files.storage.mlflow_files import PathEntry, PathTaken
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.http.content_response import content_response
from runvitals.server.http.router import ANY_METHOD
from runvitals.server.library.run_library import OpenedContent
from runvitals.server.service_parameters import access_of, door_recorder, received_files

MAX_PATH: Final = 1000
_MODELS: Final = "models"
_ARTIFACTS: Final = "artifacts"
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\\]")
# The path names the run or model; `_artifact` decides.
READS: Final = [needs("filtered run:read")]
WRITES: Final = [needs("filtered run:create")]

router: Final = mlflow_router("/api/2.0/mlflow-artifacts")
lists: Final = mlflow_router()


class ArtifactPlace(NamedTuple):
    """A path of a project. `run_id`: the run whose file it is, under the name `name`."""

    project_id: int
    path: str
    run_id: int | None
    name: str


def checked_path(path: str) -> list[str]:
    """Return the parts of a path.

    Raises:
        MlflowError: it could lead to another place, or is too long.
    """
    decoded = path
    for _ in range(3):
        decoded = unquote(decoded)
    parts = path.split("/")
    hidden = {"", ".", ".."}.intersection((*parts, *decoded.split("/")))
    if hidden or _UNSAFE.search(path) or "\\" in decoded or len(path) > MAX_PATH:
        raise invalid("Invalid path")
    return parts


def _artifact(request: Request, path: str, of_run: Action, of_model: Action) -> ArtifactPlace:
    """Return the artifact at a path, if the requester may do something with it. Reads the database.

    Raises:
        MlflowError: there is no such run or model.
        HTTPException: 401 or 403.
    """
    parts = checked_path(path)
    experiments = experiments_of(request)
    if len(parts) >= 4 and parts[1] == _MODELS and parts[3] == _ARTIFACTS:
        models = LoggedModels(access_of(request), experiments)
        model = models.find(parts[2], of_model)
        if experiments.id_of(models.experiment(model)) != parts[0]:
            raise _missing(path)
        return ArtifactPlace(model.project_id, "/".join(parts[1:]), None, "/".join(parts[4:]))
    if len(parts) < 3 or parts[2] != _ARTIFACTS:
        raise invalid(f"Invalid path: {path[:200]!r}. Expected EXPERIMENT/RUN/artifacts/…")
    run = find_run(request, parts[1], of_run)
    if experiments.id_of(experiments.of_project(run.project_id)) != parts[0]:
        raise _missing(path)
    return ArtifactPlace(run.project_id, "/".join(parts[1:]), run.run_id, "/".join(parts[3:]))


def place_for_writing(request: Request, path: str) -> ArtifactPlace:
    """Return the place of a path at which the requester may write a file. Reads the database.

    Raises:
        MlflowError: there is no such run or model, or the name of the file is missing.
        HTTPException: 401 or 403.
    """
    artifact = _artifact(request, path, Action.RUN_CREATE, Action.ARTIFACT_CREATE)
    if not artifact.name:
        raise invalid(f"Invalid path: {path[:200]!r}. The name of the file is missing")
    return artifact


def readable_place(request: Request, path: str) -> ArtifactPlace:
    """Return the place of a path whose files the requester may download. Reads the database.

    Raises:
        MlflowError: there is no such run or model.
        HTTPException: 401 or 403.
    """
    return _artifact(request, path, Action.RUN_READ, Action.ARTIFACT_DOWNLOAD)


def _missing(path: str) -> MlflowError:
    return MlflowError(RESOURCE_DOES_NOT_EXIST, f"No such artifact: '{path[:200]}'")


@router.put("/artifacts/{path:path}", *WRITES)
async def put(request: Request, path: str) -> Response:
    """Take a file. It is on the disk when the response is sent."""
    artifact = await run_in_threadpool(place_for_writing, request, path)
    files = received_files(request)
    with door_recorder(request).in_flight(2 * PIECE_BYTES):
        async with receive_file(request, files, run_id=artifact.run_id, is_artifact=True) as incoming:

            def keep(incoming: Incoming) -> None:
                files.keep(
                    incoming.path,
                    incoming.sha256,
                    incoming.size,
                    lambda file: note_file(request, artifact, file),
                    files.place_of_project(artifact.project_id),
                )

            await run_in_threadpool(keep, incoming)
    return to_response({})


def note_file(request: Request, artifact: ArtifactPlace, file: StoredFile) -> None:
    """Note a file whose content is kept under its path.

    Raises:
        MlflowError: the path is a folder, or leads through a file.
    """
    access = access_of(request)
    store, now_ms = access.metadata_store, access.clock()
    try:
        store.mlflow_files.put(artifact.project_id, artifact.path, file, artifact.run_id, now_ms)
    except PathTaken as error:
        raise invalid(f"Invalid path: {error}") from None
    if artifact.run_id is not None:
        store.stored_files.add(artifact.run_id, file, now_ms)
        # Real time: a number that repeats would not be stored.
        store.media.save_file(artifact.run_id, time.time_ns() // 1000, artifact.name, file, now_ms)


@router.get("/artifacts/{path:path}", *READS)
def download(request: Request, path: str) -> Response:
    """Return the content of a file."""
    return file_response(request, path, redirect=True)


def file_response(request: Request, path: str, redirect: bool = False) -> Response:
    """Return the content of a file. Reads the database.

    Args:
        redirect: whether the client follows a redirect to the bucket of a team; pages may not.

    Raises:
        MlflowError: there is no such file.
        HTTPException: 401 or 403.
    """
    if is_registry_path(path):
        return registry_file_response(request, path, redirect)
    artifact = readable_place(request, path)
    file = access_of(request).metadata_store.mlflow_files.get(artifact.project_id, artifact.path)
    if redirect and (elsewhere := bucket_redirect(received_files(request), file)) is not None:
        return elsewhere
    content: OpenedContent | None = None if file is None else received_files(request).open_file(file)
    if file is None or content is None:
        raise _missing(path)
    return content_response(request, content, file.sha256, artifact.name)


@router.delete("/artifacts/{path:path}", *WRITES)
def delete(request: Request, path: str) -> Response:
    """Delete a file or folder. One that does not exist is no error, as with MLflow."""
    artifact = _artifact(request, path.rstrip("/"), Action.RUN_UPDATE, Action.ARTIFACT_DELETE)
    store = access_of(request).metadata_store
    names = [artifact.name] if artifact.name else [entry.path for entry in _entries(request, artifact)]
    store.mlflow_files.remove(artifact.project_id, artifact.path)
    if artifact.run_id is not None:
        for name in names:
            store.media.remove_files(artifact.run_id, name)
    return to_response({})


@router.get("/artifacts", *READS)
def list_folder(request: Request, sent: TheMessage) -> Response:
    """Return the files and folders in a folder of artifacts."""
    path = sent.required("path", most=MAX_PATH).rstrip("/")
    if is_registry_path(path):
        return to_response({"files": [_entry_json(entry, "") for entry in entries_below(request, path)]})
    artifact = _artifact(request, path, Action.RUN_READ, Action.ARTIFACT_READ)
    return to_response({"files": [_entry_json(entry, "") for entry in _entries(request, artifact)]})


def _entries(request: Request, artifact: ArtifactPlace) -> list[PathEntry]:
    return access_of(request).metadata_store.mlflow_files.entries(artifact.project_id, artifact.path)


def _entry_json(entry: PathEntry, folder: str) -> dict[str, Any]:
    file: dict[str, Any] = {"path": f"{folder}{entry.path}", "is_dir": entry.bytes is None}
    if entry.bytes is not None:
        file["file_size"] = entry.bytes
    return file


@router.api_route("/{rest:path}", *READS, methods=ANY_METHOD)
def unknown(rest: str) -> Response:
    """Refuse what MLflow has besides."""
    raise MlflowError("ENDPOINT_NOT_FOUND", f"mlflow-artifacts/{rest[:200]} is not supported")


@lists.get("/artifacts/list", *READS)
def run_files(request: Request, sent: TheMessage) -> Response:
    """Return the files and folders in a folder of a run."""
    uid = sent.text("run_id", most=256) or sent.required("run_uuid", most=256)
    return _list_response(request, run_folder(request, uid), sent.text("path", most=MAX_PATH))


def run_folder(request: Request, uid: str, action: Action = Action.RUN_READ) -> str:
    """Return the path of the files of a run on which the requester may do an action.

    Raises:
        MlflowError: there is none.
        HTTPException: 401, 403 or 409.
    """
    run = find_run(request, uid, action)
    experiments = experiments_of(request)
    return f"{experiments.id_of(experiments.of_project(run.project_id))}/{uid}/{_ARTIFACTS}"


@lists.get("/logged-models/{model_id}/artifacts/directories", *READS)
def model_files(request: Request, model_id: str, sent: TheMessage) -> Response:
    """Return the files and folders in a folder of a logged model."""
    models = LoggedModels(access_of(request), experiments_of(request))
    model = models.find(model_id)
    root = f"{models.experiments.id_of(models.experiment(model))}/{_MODELS}/{model.uid}/{_ARTIFACTS}"
    return _list_response(request, root, sent.text("artifact_directory_path", most=MAX_PATH))


def _list_response(request: Request, root: str, folder: str | None) -> Response:
    below = (folder or "").rstrip("/")
    path = f"{root}/{below}" if below else root
    artifact = _artifact(request, path, Action.RUN_READ, Action.ARTIFACT_READ)
    prefix = f"{below}/" if below else ""
    files = [_entry_json(entry, prefix) for entry in _entries(request, artifact)]
    return to_response({"root_uri": f"mlflow-artifacts:/{root}", "files": files})
