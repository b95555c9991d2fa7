"""Files of versions in registries, as MLflow's clients read them.

Their paths are `registry/MEMBERSHIP/…`: whoever may download from the registry reads them, wherever they come
from.
"""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request
from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.access.requester import requester_of
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError
from runvitals.server.doors.mlflow.registry import ModelRegistry
from runvitals.server.files.routes.bucket_redirect import bucket_redirect
from runvitals.server.files.storage.mlflow_files import PathEntry
from runvitals.server.http.content_response import content_response
from runvitals.server.registry.storage.model_versions import FILES
from runvitals.server.service_parameters import access_of, received_files


class RegistryPath(NamedTuple):
    """A path of a version's files."""

    membership_id: int
    version_id: int
    name: str


def is_registry_path(path: str) -> bool:
    """Return whether a path of artifacts is that of a version in a registry."""
    return path.partition("/")[0] == FILES


def registry_path(request: Request, path: str) -> RegistryPath:
    """Return the version and the name that a path means, if the requester may download it.

    Raises:
        MlflowError: there is no such version.
        HTTPException: 401, 403 or 404.
    """
    parts = path.strip("/").split("/")
    number = int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() and len(parts[1]) < 10 else 0
    access = access_of(request)
    member = access.metadata_store.artifacts.collections.with_id(number)
    if member is None:
        raise _missing(path)
    registry = ModelRegistry(access, requester_of(request))
    registry.require_in(member.collection.project_id, Action.REGISTRY_DOWNLOAD)
    return RegistryPath(member.id, member.version.id, "/".join(parts[2:]))


def entries_below(request: Request, path: str) -> list[PathEntry]:
    """Return the files and folders directly in a folder of a version."""
    version_path = registry_path(request, path)
    prefix = f"{version_path.name}/" if version_path.name else ""
    entries: dict[str, int | None] = {}
    for entry in access_of(request).metadata_store.artifacts.entries.all(version_path.version_id):
        if entry.path.startswith(prefix) and entry.sha256 is not None:
            first, slash, _ = entry.path[len(prefix) :].partition("/")
            entries[first] = None if slash else entry.bytes or 0
    return [PathEntry(name, size) for name, size in sorted(entries.items())]


def registry_file_response(request: Request, path: str, redirect: bool) -> Response:
    """Return the content of a file of a version.

    Args:
        redirect: see `file_response`.

    Raises:
        MlflowError: there is no such file.
    """
    version_path = registry_path(request, path)
    store = access_of(request).metadata_store
    entry = (
        store.artifacts.entries.get(version_path.version_id, version_path.name) if version_path.name else None
    )
    stored = None if entry is None else entry.stored
    if redirect and (elsewhere := bucket_redirect(received_files(request), stored)) is not None:
        return elsewhere
    content = None if stored is None else received_files(request).open_file(stored)
    if stored is None or content is None:
        raise _missing(path)
    store.read_days.note_version(version_path.version_id, access_of(request).clock())
    return content_response(request, content, stored.sha256, version_path.name.rpartition("/")[2])


def _missing(path: str) -> MlflowError:
    return MlflowError(RESOURCE_DOES_NOT_EXIST, f"No such artifact: '{path[:200]}'")
