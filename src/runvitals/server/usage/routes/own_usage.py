"""`/account/usage`: how much of the server's storage the user's own space takes."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.library.measured_library import KINDS, ProjectStorage
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess
from runvitals.server.services import shared_services_of

router = Router()


class BytesByKind(ResponseBody):
    """Bytes of what is stored, by kind."""

    samples: int
    console: int
    media: int
    files: int
    artifacts: int
    reports: int


class ProjectBytes(ResponseBody):
    """The bytes that a project stores, by kind and together."""

    project: str
    runs: int
    samples: int
    console: int
    media: int
    files: int
    artifacts: int
    reports: int
    trash: int = Field(description="Of runs and reports in the trash, which the others include.")
    bytes: int


class StoredBytes(ResponseBody):
    """The bytes that a team or user stores: in all, by kind, and by project."""

    bytes: int
    limit_bytes: int | None
    by_kind: BytesByKind
    trash_bytes: int
    by_project: list[ProjectBytes]


class StorageUse(ResponseBody):
    """The storage of a team or user."""

    storage: StoredBytes


@router.get("/account/usage", needs("account:read"), response_model=StorageUse)
async def usage(request: Request, access: TheAccess, owner: TheOwner) -> Any:
    """The storage that the projects of the user's own space take. Runs in teams count for the team."""
    library = shared_services_of(request).library
    user = await run_in_threadpool(access.accounts.users.get, owner.id)
    limit = await run_in_threadpool(storage_limit, access)
    projects = await library.storage(user.entity_id)
    return storage_use(projects, projects, limit)


def storage_limit(access: AccessControl) -> int | None:
    """How many bytes a team or user should take at most; None: there is no limit. Nothing is refused."""
    limit_gb: int | None = with_defaults(access.accounts.settings.all())["storage_limit_gb"]
    return None if limit_gb is None else limit_gb * 10**9


def storage_use(
    projects: list[ProjectStorage], listed: list[ProjectStorage], limit: int | None
) -> dict[str, Any]:
    """The response about what projects store. `listed`: those that it lists; the sums contain all."""
    storage = {
        "bytes": sum(project.bytes for project in projects),
        "limit_bytes": limit,
        "by_kind": {kind: sum(project.by_kind[kind] for project in projects) for kind in KINDS},
        "trash_bytes": sum(project.trash for project in projects),
        "by_project": listed,
    }
    return {"storage": storage}
