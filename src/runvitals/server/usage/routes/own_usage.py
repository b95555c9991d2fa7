"""`/account/usage`: how much of the server's storage the user's own space takes."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.http.router import Router
from runvitals.server.library.measured_library import KINDS, ProjectStorage
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess
from runvitals.server.services import shared_services_of

router = Router()


@router.get("/account/usage", dependencies=[needs("account:read")])
async def usage(request: Request, access: TheAccess, owner: TheOwner) -> Any:
    """The storage that the projects of the user's own space take. Runs in teams count for the team."""
    library = shared_services_of(request).library
    user = await run_in_threadpool(access.accounts.users.get, owner.id)
    limit = await run_in_threadpool(storage_limit, access)
    return {"storage": storage_json(await library.storage(user.entity_id), limit)}


def storage_limit(access: AccessControl) -> int | None:
    """How many bytes a team or user should take at most; None: there is no limit. Nothing is refused."""
    limit_gb: int | None = with_defaults(access.accounts.settings.all())["storage_limit_gb"]
    return None if limit_gb is None else limit_gb * 10**9


def storage_json(projects: list[ProjectStorage], limit: int | None) -> dict[str, Any]:
    """Storage in bytes: in all, by kind, and by project. `trash` is part of the others."""
    return {
        "bytes": sum(project.bytes for project in projects),
        "limit_bytes": limit,
        "by_kind": {kind: sum(project.by_kind[kind] for project in projects) for kind in KINDS},
        "trash_bytes": sum(project.trash for project in projects),
        "by_project": [project_storage_json(project) for project in projects],
    }


def project_storage_json(project: ProjectStorage) -> dict[str, Any]:
    """Bytes of a project, by kind and together."""
    about = {"project": project.project, "runs": project.runs}
    return {**about, **project.by_kind, "trash": project.trash, "bytes": project.bytes}
