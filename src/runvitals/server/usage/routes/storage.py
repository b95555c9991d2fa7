"""`/storage`: which teams, users, projects and runs take the space, so that it can be cleared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Path, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity, Organisation, Project, ProjectItem
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.listing import PageRequest, ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.library.measured_library import KINDS, ProjectStorage, RunStorage
from runvitals.server.runs.routes.project_parameters import trash_ms
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.server.usage.routes.own_usage import ProjectBytes
from runvitals.server.usage.storage.read_days import day_text
from runvitals.server.usage.storage.reading import StoredTimes
from runvitals.store.errors import NotFound

router = Router()
EntityName = Annotated[str, Path(description="A team or user.", max_length=64)]
ProjectName = Annotated[str, Path(max_length=256)]
Order = Annotated[
    Literal["bytes", "started", "last", "read", "name"],
    Query(
        description="The largest, the oldest, the longest silent, what was not read for the longest time "
        "(what was not read since reads are noted comes first), or by name."
    ),
]
_LAST_READ: Final = "The last day (UTC) on which it was read; None: not since reads are noted."


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
    started_ms: int | None = Field(description="When its first run or artifact was made.")
    last_ms: int | None = Field(description="The newest sample or artifact.")
    last_read: str | None = Field(description=_LAST_READ)


class EntityBytesPage(ResponseBody):
    """A page of teams and users."""

    day: str | None = Field(description="At the beginning of which day; None: nothing was measured yet.")
    entities: list[EntityBytes]
    total: int
    next: str | None


class MeasuredProject(ProjectBytes):
    """The bytes that a project stores, and how old and how used it is."""

    started_ms: int | None = Field(description="When its first run or artifact was made.")
    last_ms: int | None = Field(description="The newest sample or artifact.")
    last_read: str | None = Field(description=_LAST_READ)
    purged_ms: int | None = Field(description="When it leaves the trash for good; None: it is not there.")
    may: list[str] = Field(description="`project:delete` if the requester may delete it.")


class TrashSummary(ResponseBody):
    """What the trash holds."""

    runs: int
    bytes: int = Field(description="How much is free once it is empty: of runs and reports.")
    first_ms: int | None = Field(description="When the first of the runs leaves it for good.")
    last_ms: int | None = Field(description="When the last of them does.")


class ExpirySummary(ResponseBody):
    """What the time to live of artifacts will take."""

    versions: int
    bytes: int = Field(description="Content that several versions have counts in each.")
    first_ms: int | None = Field(description="When the first of them is deleted.")


class ProjectBytesPage(ResponseBody):
    """A page of projects."""

    projects: list[MeasuredProject]
    total: int
    next: str | None
    trash: TrashSummary
    expiring: ExpirySummary


class RunBytes(ResponseBody):
    """The bytes that a run stores, by kind and together."""

    run: str
    name: str
    started_ms: int
    last_ms: int
    last_read: str | None = Field(description=_LAST_READ)
    in_trash: bool
    purged_ms: int | None = Field(description="When it leaves the trash for good.")
    samples: int
    console: int
    media: int
    files: int
    bytes: int
    may: list[str] = Field(description="`run:delete` if the requester may delete it.")


RunBytesPage = page_body("RunBytesPage", "A page of runs of a project.", runs=list[RunBytes])


class ArtifactBytes(ResponseBody):
    """The versions of an artifact. Content that several of them have counts in each."""

    name: str
    type: str
    versions: int
    bytes: int
    expiring_bytes: int = Field(description="Of versions with a time to live.")
    expires_ms: int | None = Field(description="When the first of them is deleted.")
    newest_ms: int
    last_read: str | None = Field(description="The last day (UTC) on which a file of it was read.")
    may: list[str] = Field(description="`artifact:delete` if the requester may delete it.")


ArtifactBytesPage = page_body(
    "ArtifactBytesPage", "A page of artifacts of a project.", artifacts=list[ArtifactBytes]
)


T = TypeVar("T")
_Facts = tuple[int, int | None, int | None, int | None, str]
"""Bytes, when it began, the newest of it, the day on which it was last read, and its name."""
_PROJECT_ACTIONS = frozenset((Action.PROJECT_DELETE,))
_ARTIFACT_ACTIONS = frozenset((Action.ARTIFACT_DELETE,))
_RUN_ACTIONS = frozenset((Action.RUN_DELETE,))


@router.get("/storage", needs("filtered storage:read"), response_model=EntityBytesPage | ProjectBytesPage)
async def entities(
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    entity: Annotated[
        str | None,
        Query(description="As `/storage/{entity}`: the projects of this team or user.", max_length=64),
    ] = None,
    sort: Order = "bytes",
) -> dict[str, Any]:
    """List the bytes that teams and users stored at the beginning of the day.

    Only who may read the organisation's usage sees all of them.
    """
    if entity is not None:
        return await _projects(request, access, requester, entity, page, sort)
    return await run_in_threadpool(_entities, access, requester, page, sort)


def _entities(access: AccessControl, requester: Requester, page: PageRequest, sort: str) -> dict[str, Any]:
    access.require(requester, Action.BILLING_READ, Organisation(), "the organisation", changes=False)
    reading = access.metadata_store.usage.reading
    names, day = reading.names(), None
    sizes: dict[int | None, dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
    projects: dict[int | None, set[int]] = defaultdict(set)
    for row in reading.newest_storage():
        day = row.day
        sizes[row.entity_id][row.kind] += row.bytes
        projects[row.entity_id].add(row.project_id)
    times = reading.storage_times()

    def facts(number: int | None) -> _Facts:
        name, size = names.get(("entity", number or 0)) or "", sum(sizes[number].values())
        ages = times.get(number, StoredTimes())
        return size, ages.started_ms, ages.last_ms, ages.read_day, name

    rows: list[dict[str, Any]] = []
    for number in _in_order(sizes, sort, facts):
        size, started_ms, last_ms, read_day, name = facts(number)
        ages = {"started_ms": started_ms, "last_ms": last_ms, "last_read": day_text(read_day)}
        about = {"entity": name or None, "projects": len(projects[number]), "bytes": size}
        rows.append({**about, **sizes[number], **ages})
    return {"day": day, **page_in_order("entities", rows, page)}


@router.get("/storage/{entity}", needs("filtered storage:read"), response_model=ProjectBytesPage)
async def projects(
    request: Request,
    entity: EntityName,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    sort: Order = "bytes",
) -> dict[str, Any]:
    """List the bytes that the projects of a team or user store now, and what goes by itself."""
    return await _projects(request, access, requester, entity, page, sort)


async def _projects(
    request: Request, access: AccessControl, requester: Requester, name: str, page: PageRequest, sort: str
) -> dict[str, Any]:
    owner = await run_in_threadpool(_entity, access, requester, name)
    library = shared_services_of(request).library
    project_ids = await run_in_threadpool(_known_projects, access, requester, owner)
    storages = [
        project
        for project in await library.storage(owner.id)
        if project_ids is None or project.project_id in project_ids
    ]
    ordered = _in_order(
        storages,
        sort,
        lambda storage: (
            storage.bytes,
            storage.started_ms,
            storage.last_ms,
            storage.read_day,
            storage.project,
        ),
    )
    listed = page_in_order("projects", ordered, page)
    rows = await run_in_threadpool(_stored_projects, access, requester, listed["projects"])
    return {
        **listed,
        "projects": rows,
        **_going(storages, await run_in_threadpool(_run_trash_ms, request, access)),
    }


def _stored_projects(
    access: AccessControl, requester: Requester, storages: list[ProjectStorage]
) -> list[dict[str, Any]]:
    kept_ms = trash_ms(access)
    return [
        {
            "project": storage.project,
            "runs": storage.runs,
            **storage.by_kind,
            "trash": storage.trash,
            "bytes": storage.bytes,
            "started_ms": storage.started_ms,
            "last_ms": storage.last_ms,
            "last_read": day_text(storage.read_day),
            "purged_ms": None if storage.trashed_ms is None else storage.trashed_ms + kept_ms,
            "may": _may_delete(access, requester, storage),
        }
        for storage in storages
    ]


def _may_delete(access: AccessControl, requester: Requester, storage: ProjectStorage) -> list[str]:
    """Return `project:delete` for a project that is not in the trash and that the requester may delete."""
    if storage.trashed_ms is not None:
        return []
    try:
        project = access.directory.project(storage.project_id)
    except (NotFound, UnknownProject):  # removed a moment ago
        return []
    if project.owner_id is not None:
        sole_author = access.accounts.project_members.sole_author(project.id)
        project = replace(project, sole_author=sole_author)
    return access.may_list(requester, project, _PROJECT_ACTIONS)


def _going(storages: list[ProjectStorage], kept_ms: int) -> dict[str, Any]:
    """Return what the trash and the time to live will free."""
    trashed = [since for storage in storages for since in storage.trashed_runs]
    ends = [storage.expires_ms for storage in storages if storage.expires_ms is not None]
    return {
        "trash": {
            "runs": len(trashed),
            "bytes": sum(storage.trash for storage in storages),
            "first_ms": min(trashed) + kept_ms if trashed else None,
            "last_ms": max(trashed) + kept_ms if trashed else None,
        },
        "expiring": {
            "versions": sum(storage.expiring for storage in storages),
            "bytes": sum(storage.expiring_bytes for storage in storages),
            "first_ms": min(ends, default=None),
        },
    }


@router.get("/storage/{entity}/{project}", needs("filtered run:read"), response_model=RunBytesPage)
async def runs(
    request: Request,
    entity: EntityName,
    project: ProjectName,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    sort: Order = "bytes",
) -> dict[str, Any]:
    """List the bytes of a project's runs now; `may` has `run:delete` for those they may delete."""
    owned = await run_in_threadpool(_project, access, requester, entity, project)
    library = shared_services_of(request).library
    storages = await library.run_storage(owned.entity.id, owned.id)

    def facts(storage: RunStorage) -> _Facts:
        run = storage.run
        return storage.bytes, run.started_ms, run.last_ms, run.read_day, f"{run.name}/{run.uid}"

    listed = page_in_order("runs", _in_order(storages, sort, facts), page)
    kept_ms = await run_in_threadpool(_run_trash_ms, request, access)
    runs = await run_in_threadpool(_with_rights, access, requester, owned, listed["runs"], kept_ms)
    return {**listed, "runs": runs}


@router.get(
    "/storage/{entity}/{project}/artifacts", needs("filtered artifact:read"), response_model=ArtifactBytesPage
)
def artifacts(
    entity: EntityName,
    project: ProjectName,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    sort: Order = "bytes",
) -> dict[str, Any]:
    """List the bytes of a project's artifacts, and what their time to live will take."""
    owned = _project(access, requester, entity, project)
    item = ProjectItem("artifact", 0, owned)
    access.require(requester, Action.ARTIFACT_READ, item, f"project {f'{entity}/{project}'!r}", changes=False)
    may = access.may_list(requester, item, _ARTIFACT_ACTIONS)
    sizes = access.metadata_store.artifacts.collections.sizes(owned.id)
    ordered = _in_order(
        sizes, sort, lambda row: (row.bytes, row.oldest_ms, row.newest_ms, row.read_day, row.name)
    )
    rows = [{**asdict(size), "last_read": day_text(size.read_day), "may": may} for size in ordered]
    return page_in_order("artifacts", rows, page)


def _in_order(rows: Iterable[T], sort: str, facts: Callable[[T], _Facts]) -> list[T]:
    """Return rows in an order. Of times the earliest comes first, and before it what is not known."""

    def key(row: T) -> tuple[int, str]:
        size, started, last, read_day, name = facts(row)
        times = {"started": started, "last": last, "read": read_day}
        if sort in times:
            return times[sort] or -1, name
        return -size if sort == "bytes" else 0, name

    return sorted(rows, key=key)


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


def _run_trash_ms(request: Request, access: AccessControl) -> int:
    """How long runs stay in the trash."""
    kept_ms = shared_services_of(request).health.run_trash_ms
    return trash_ms(access) if kept_ms is None else kept_ms


def _with_rights(
    access: AccessControl, requester: Requester, project: Project, storages: list[RunStorage], kept_ms: int
) -> list[dict[str, Any]]:
    return [
        {
            "run": storage.run.uid,
            "name": storage.run.name,
            "started_ms": storage.run.started_ms,
            "last_ms": storage.run.last_ms,
            "last_read": day_text(storage.run.read_day),
            "in_trash": storage.run.in_trash,
            "purged_ms": None if storage.run.trashed_ms is None else storage.run.trashed_ms + kept_ms,
            **storage.by_kind,
            "bytes": storage.bytes,
            "may": access.may_list(
                requester,
                ProjectItem(
                    "run",
                    0,
                    project,
                    storage.run.author_id,
                    storage.run.service_account_id,
                    storage.run.in_trash,
                ),
                _RUN_ACTIONS,
            ),
        }
        for storage in storages
    ]
