"""Files by the name of their run or model, as MLflow's page and older clients ask for them.

`get-artifact`, `upload-artifact` and the like.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.doors.mlflow.artifact_routes import (
    MAX_PATH,
    READS,
    WRITES,
    ArtifactPlace,
    checked_path,
    file_response,
    note_file,
    place_for_writing,
    run_folder,
)
from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.logged_models import TheLoggedModels
from runvitals.server.doors.mlflow.registry import TheRegistry, sent_version
from runvitals.server.doors.mlflow.requests import SentMessage, TheMessage, mlflow_router, to_response
from runvitals.server.files.reserved_space import FileRejected
from runvitals.server.files.routes.incoming_file import Incoming, receive_file
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.service_parameters import door_recorder, received_files

UPLOAD_BYTES: Final = 10 * 1024 * 1024
"""The largest file of `upload-artifact`, as with MLflow."""
_SCHEME: Final = "mlflow-artifacts:/"
_TOO_LARGE: Final = 413

pages: Final = mlflow_router("")
router: Final = mlflow_router()


@pages.get("/get-artifact", *READS)
def of_run(request: Request, sent: TheMessage) -> Response:
    """Return the content of a file of a run."""
    path = _file_path(sent, "path")
    uid = sent.text("run_id", most=256) or sent.required("run_uuid", most=256)
    return file_response(request, f"{run_folder(request, uid)}/{path}")


@pages.get("/model-versions/get-artifact", *READS)
def of_version(request: Request, sent: TheMessage, registry: TheRegistry) -> Response:
    """Return the content of a file of a model version."""
    path = _file_path(sent, "path")
    model = registry.find(sent.required("name"), Action.REGISTRY_DOWNLOAD)
    location = registry.version(model, sent_version(sent)).location
    if not location.startswith(_SCHEME):
        raise invalid("The files of this version are not on this server")
    return file_response(request, f"{location.removeprefix(_SCHEME).strip('/')}/{path}")


@router.get("/logged-models/{model_id}/artifacts/files", *READS)
def of_model(
    request: Request,
    model_id: Annotated[str, Path(max_length=200)],
    sent: TheMessage,
    models: TheLoggedModels,
) -> Response:
    """Return the content of a file of a logged model."""
    path = _file_path(sent, "artifact_file_path")
    model = models.find(model_id)
    folder = f"{models.experiments.id_of(models.experiment(model))}/models/{model.uid}/artifacts"
    return file_response(request, f"{folder}/{path}")


@router.post("/upload-artifact", *WRITES)
async def upload(request: Request) -> Response:
    """Take a small file of a run. It is on the disk when the response is sent."""
    sent = SentMessage(request.query_params)
    for name in ("run_uuid", "path"):
        if not sent.text(name):
            raise invalid(f"Request must specify {name}.")
    path = _file_path(sent, "path")
    uid = sent.required("run_uuid", most=256)

    def find_artifact() -> ArtifactPlace:
        return place_for_writing(request, f"{run_folder(request, uid, Action.RUN_CREATE)}/{path}")

    artifact = await run_in_threadpool(find_artifact)
    files = received_files(request)

    def keep(incoming: Incoming) -> None:
        if not incoming.size:
            raise invalid("Request must specify data.")
        files.keep(
            incoming.path,
            incoming.sha256,
            incoming.size,
            lambda file: note_file(request, artifact, file),
            files.place_of_project(artifact.project_id),
        )

    try:
        with door_recorder(request).in_flight(UPLOAD_BYTES):
            async with receive_file(request, files, UPLOAD_BYTES, artifact.run_id) as incoming:
                await run_in_threadpool(keep, incoming)
    except HttpRejection as error:
        if error.status == _TOO_LARGE and not isinstance(error, FileRejected):
            raise invalid("Artifact size is too large. Max size is 10MB.") from None
        raise
    return to_response({})


def _file_path(sent: SentMessage, name: str) -> str:
    """Return the path of a file in its folder."""
    path = sent.required(name, most=MAX_PATH)
    checked_path(path)
    return path
