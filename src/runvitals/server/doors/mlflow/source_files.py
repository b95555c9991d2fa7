"""The files of a run or logged model from which a model version is registered."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from fastapi import HTTPException, Request

from runvitals.model.errors import AmbiguousName, UnknownRun
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import requester_of
from runvitals.server.doors.mlflow.artifact_routes import readable_place
from runvitals.server.doors.mlflow.registry_files import is_registry_path
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.registry.storage.model_versions import SCHEME
from runvitals.server.service_parameters import access_of, received_files

_PIECE: Final = 1 << 20


def files_of_source(request: Request, source: str) -> dict[str, tuple[str, StoredFile]]:
    """Return the files below the address of a source, with their MD5; none if it is not on this server.

    Raises:
        MlflowError: there is no such run or model.
        HTTPException: 401 or 403.
    """
    if not source.startswith(SCHEME):
        return {}
    path = source.removeprefix(SCHEME).strip("/")
    if is_registry_path(path):
        return {}
    artifact = readable_place(request, path)
    files = access_of(request).metadata_store.mlflow_files.below(artifact.project_id, artifact.path)
    return {name: (_md5(request, file), file) for name, file in files.items()}


def _md5(request: Request, file: StoredFile) -> str:
    """The digest of a content as wandb's clients write it."""
    opened = received_files(request).open_file(file)
    if opened is None:
        raise HTTPException(404, "the content of a file of this model is lost: log it again")
    digest = hashlib.md5(usedforsecurity=False)
    with opened.file as content:
        while piece := content.read(_PIECE):
            digest.update(piece)
    return base64.b64encode(digest.digest()).decode()


def run_number(request: Request, uid: str | None) -> int | None:
    """Return the number of a run that the requester may read; None if there is none."""
    access, requester = access_of(request), requester_of(request)
    if uid is None:
        return None
    if isinstance(requester.principal, Operator):
        runs = access.metadata_store.runs.places(uid)
        return runs[0].run_id if runs else None
    try:
        return access.directory.find_run(requester.principal, uid[:256]).id
    except (UnknownRun, AmbiguousName):
        return None
