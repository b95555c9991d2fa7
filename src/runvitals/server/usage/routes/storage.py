"""`/storage`: which teams, users, projects and runs take the space, so that it can be cleared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester, TheRequester
from runvitals.server.access.resources import Entity, Organisation, Project, ProjectItem
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.library.measured_library import KINDS, RunStorage
from runvitals.server.runs.routes.project_parameters import trash_ms
from runvitals.server.service_parameters import TheAccess
from runvitals.server.services import shared_services_of
from runvitals.server.usage.routes.own_usage import ProjectBytes

router = Router()
EntityName = Annotated[str, Path(description="A team or user.", max_length=64)]
ProjectName = Annotated[str, Path(max_length=256)]
RunOrder = Annotated[
    Literal["bytes", "started", "last", "name"],
    Query(description="The largest, the oldest, the longest silent, or by name first."),
]


class EntityBytes(ResponseBody):
    """The bytes that a team or user stores, by kind and together."""

    entity: str | None = Field(description="None: runs of nobody.")
    projects: int
    samples: int
    console: int
    media: int
    files: int
    artifacts: int
    reports: int
    bytes: int


class EntityBytesPage(ResponseBody):
    """A page of teams and users, the largest first."""

    day: str | None = Field(description="At the beginning of which day; None: nothing was measured yet.")
    entities: list[EntityBytes]
    total: int
    next: str | None


class ProjectBytesPage(ResponseBody):
    """A page of projects, the largest first."""

    projects: list[ProjectBytes]
    total: int
    next: str | None


class RunBytes(ResponseBody):
    """The bytes that a run stores, by kind and together."""

    run: str
    name: str
    started_ms: int
    last_ms: int
    in_trash: bool
    purged_ms: int | None = Field(description="When it leaves the trash for good.")
    samples: int
    console: int
    media: int
    files: int
    bytes: int
    may: list[str] = Field(description="`run:delete` if the requester may delete it.")


class RunBytesPage(ResponseBody):
    """A page of runs of a project."""

    runs: list[RunBytes]
    total: int
    next: str | None


class ArtifactBytes(ResponseBody):
    """The versions of an artifact. Content that several of them have counts in each."""

    name: str
    type: str
    versions: int
    bytes: int
    expiring_bytes: int = Field(description="Of versions with a time to live.")
    expires_ms: int | None = Field(description="When the first of them is deleted.")
    newest_ms: int
    may: list[str] = Field(description="`artifact:delete` if the requester may delete it.")


class ArtifactBytesPage(ResponseBody):
    """A page of artifacts of a project, the largest first."""

    artifacts: list[ArtifactBytes]
    total: int
    next: str | None


_ARTIFACT_ACTIONS = frozenset((Action.ARTIFACT_DELETE,))
_RUN_ACTIONS = frozenset((Action.RUN_DELETE,))


@router.get("/storage", response_model=EntityBytesPage, dependencies=[needs("billing:read")])
def entities(access: TheAccess, page: ThePage) -> dict[str, Any]:
    """List the bytes that teams and users stored at the beginning of the day, the largest first."""
    reading = access.metadata_store.usage.reading
    names, day = reading.names(), None
    sizes: dict[int | None, dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
    projects: dict[int | None, set[int]] = defaultdict(set)
    for row in reading.newest_storage():
        day = row.day
        sizes[row.entity_id][row.kind] += row.bytes
        projects[row.entity_id].add(row.project_id)
    rows: list[dict[str, Any]] = [
        {
            "entity": names.get(("entity", number or 0)),
            "projects": len(projects[number]),
            **by_kind,
            "bytes": sum(by_kind.values()),
        }
        for number, by_kind in sizes.items()
    ]
    rows.sort(key=lambda one: (-one["bytes"], one["entity"] or ""))
    return {"day": day, **page_in_order("entities", rows, page)}


@router.get(
    "/storage/{entity}", response_model=ProjectBytesPage, dependencies=[needs("filtered storage:read")]
)
async def projects(
    request: Request, entity: EntityName, access: TheAccess, requester: TheRequester, page: ThePage
) -> dict[str, Any]:
    """List the bytes that the projects of a team or user store now, the largest first."""
    owner = await run_in_threadpool(_entity, access, requester, entity)
    library = shared_services_of(request).library
    project_ids = await run_in_threadpool(_known_projects, access, requester, owner)
    stored = [
        project
        for project in await library.storage(owner.id)
        if project_ids is None or project.project_id in project_ids
    ]
    return page_in_order("projects", stored, page)


@router.get(
    "/storage/{entity}/{project}", response_model=RunBytesPage, dependencies=[needs("filtered run:read")]
)
async def runs(
    request: Request,
    entity: EntityName,
    project: ProjectName,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    sort: RunOrder = "bytes",
) -> dict[str, Any]:
    """List the bytes of a project's runs now; `may` has `run:delete` for those they may delete."""
    owned = await run_in_threadpool(_project, access, requester, entity, project)
    library = shared_services_of(request).library
    stored = await library.run_storage(owned.entity.id, owned.id)
    if sort == "name":
        stored.sort(key=lambda run: (run.place.name, run.place.uid))
    elif sort != "bytes":
        stored.sort(key=lambda run: run.place.started_ms if sort == "started" else run.place.last_ms)
    listed = page_in_order("runs", stored, page)
    runs = await run_in_threadpool(_with_rights, access, requester, owned, listed["runs"])
    return {**listed, "runs": runs}


@router.get(
    "/storage/{entity}/{project}/artifacts",
    response_model=ArtifactBytesPage,
    dependencies=[needs("filtered artifact:read")],
)
def artifacts(
    entity: EntityName, project: ProjectName, access: TheAccess, requester: TheRequester, page: ThePage
) -> dict[str, Any]:
    """List the bytes of a project's artifacts, and what their time to live will take."""
    owned = _project(access, requester, entity, project)
    item = ProjectItem("artifact", 0, owned)
    access.require(requester, Action.ARTIFACT_READ, item, f"project {f'{entity}/{project}'!r}", changes=False)
    may = access.may_list(requester, item, _ARTIFACT_ACTIONS)
    sizes = access.metadata_store.artifacts.collections.sizes(owned.id)
    return page_in_order("artifacts", [{**asdict(size), "may": may} for size in sizes], page)


def _entity(access: AccessControl, requester: Requester, name: str) -> Entity:
    """The team or user of the path, if the requester may see what it stores."""
    owner, what = access.directory.entity_named(name), f"team or user {name!r}"
    if owner is None:
        access.hide(requester, what)
    if owner.owner_id != requester.user_id or requester.user_id is None:
        reads_all = access.may(requester, Action.BILLING_READ, Organisation())
        if not reads_all:
            access.require(requester, Action.STORAGE_READ, owner, what, changes=False)
    return owner


def _known_projects(access: AccessControl, requester: Requester, entity: Entity) -> set[int] | None:
    """The ids of the projects of which the requester may know; None: all."""
    own = entity.owner_id is not None and entity.owner_id == requester.user_id
    if own or access.may(requester, Action.BILLING_READ, Organisation()):
        return None
    projects = access.directory.projects_of(entity.id)
    if access.may(requester, Action.PROJECT_READ_VISIBILITY, entity):
        return set(projects)
    return {
        number for number, project in projects.items() if access.may(requester, Action.PROJECT_READ, project)
    }


def _project(access: AccessControl, requester: Requester, entity: str, name: str) -> Project:
    """The project of the path, if the requester may read its runs."""
    owner, what = access.directory.entity_named(entity), f"project {f'{entity}/{name}'!r}"
    project = None if owner is None else access.directory.project_named(owner.id, name)
    if project is None:
        access.hide(requester, what)
    access.require(requester, Action.PROJECT_READ, project, what, changes=False)
    return project


def _with_rights(
    access: AccessControl, requester: Requester, project: Project, stored: list[RunStorage]
) -> list[dict[str, Any]]:
    kept_ms = trash_ms(access)
    return [
        {
            "run": run.place.uid,
            "name": run.place.name,
            "started_ms": run.place.started_ms,
            "last_ms": run.place.last_ms,
            "in_trash": run.place.in_trash,
            "purged_ms": None if run.place.trashed_ms is None else run.place.trashed_ms + kept_ms,
            **run.by_kind,
            "bytes": run.bytes,
            "may": access.may_list(
                requester,
                ProjectItem(
                    "run", 0, project, run.place.author_id, run.place.service_account_id, run.place.in_trash
                ),
                _RUN_ACTIONS,
            ),
        }
        for run in stored
    ]
