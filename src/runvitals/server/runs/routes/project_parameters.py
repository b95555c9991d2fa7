"""The project of the path, and its JSON in responses."""

from __future__ import annotations

from typing import Annotated, Any, Final

import anyio.from_thread
from fastapi import Depends, Path, Request
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import PROJECT_ACTIONS, Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.policies import visibility_problem
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity, Project, Visibility
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.outside_services import OutsideServices
from runvitals.server.projects.storage.owned_projects import ProjectDetail
from runvitals.server.runs.routes.parameters import ProjectNumber
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.server.user_content.markdown import MAX_CHARACTERS, html_of

PATH = "/entities/{entity}/projects/{project}"
EntityName = Annotated[str, Path(description="A team or user.", max_length=64)]
ProjectName = Annotated[str, Path(description="The project's name.", max_length=256)]


class ProjectDetailSchema(ResponseBody):
    """A project. Of one that the requester may change but not read: its name, owner and visibility only."""

    name: str
    entity: str
    description: str = ""
    overview: str = Field("", description="Markdown.")
    overview_html: str = ""
    visibility: Visibility
    blocked_visibilities: dict[str, str] = Field(
        {}, description="The visibilities that it cannot get, and why; none for who may not change it."
    )
    owner: str | None
    created_ms: int = 0
    deleted_ms: int | None = None
    purged_ms: int | None = None
    runs: int = 0
    newest_ms: int | None = None
    starred: bool = False
    may: list[str] = Field([], description="What the requester may do with it and in it.")


PROJECT_RESPONSE: Final[dict[str, Any]] = {
    "response_model": ProjectDetailSchema,
    "response_model_exclude_unset": True,
}
"""Options of routes that answer with `project_detail`."""


def the_entity(entity: EntityName, access: TheAccess, requester: TheRequester) -> Entity:
    """Return the team or user of the path, or raise 404; `needs` has checked what the requester may do."""
    resource = access.directory.entity_named(entity)
    if resource is None:
        access.hide(requester, f"team or user {entity!r}")
    return resource


TheEntity = Annotated[Entity, Depends(the_entity)]


def the_project(
    entity: EntityName,
    project: ProjectName,
    number: ProjectNumber,
    access: TheAccess,
    requester: TheRequester,
) -> ProjectDetail:
    """Return the project of the path; `needs` has looked it up.

    Raises:
        HTTPException: 404 if there is none.
    """
    if number is None:  # on a server without accounts, where no right is checked
        owner = access.directory.entity_named(entity)
        resource = None if owner is None else access.directory.project_named(owner.id, project)
        number = None if resource is None else resource.id
    if number is None:
        access.hide(requester, f"project {f'{entity}/{project}'!r}")
    return access.accounts.owned_projects.get(number)


TheProject = Annotated[ProjectDetail, Depends(the_project)]


def resource_of(access: AccessControl, row: ProjectDetail) -> Project:
    """Return the project as decisions need it."""
    return access.directory.project(row.id)


def project_detail(
    access: AccessControl, requester: Requester, project_id: int, outside: OutsideServices
) -> dict[str, Any]:
    """Return the fields of a `ProjectDetailSchema`."""
    row = access.accounts.owned_projects.get(project_id)
    if not access.may(requester, Action.PROJECT_READ, resource_of(access, row)):
        public_fields = ("name", "entity", "visibility", "owner")
        return {field: getattr(row, field) for field in public_fields}
    user_id = requester.user_id
    starred = frozenset() if user_id is None else access.accounts.owned_projects.starred(user_id)
    return {
        "name": row.name,
        "entity": row.entity,
        "description": row.description,
        "overview": row.overview,
        "overview_html": html_of(row.overview[:MAX_CHARACTERS], outside.image_links()),
        "visibility": row.visibility,
        "blocked_visibilities": _blocked_visibilities(access, requester, resource_of(access, row)),
        "owner": row.owner,
        "created_ms": row.created_ms,
        "deleted_ms": row.deleted_ms,
        "purged_ms": None if row.deleted_ms is None else row.deleted_ms + trash_ms(access),
        "runs": row.runs,
        "newest_ms": row.newest_ms,
        "starred": row.id in starred,
        "may": access.may_list(requester, resource_of(access, row), PROJECT_ACTIONS),
    }


def _blocked_visibilities(access: AccessControl, requester: Requester, project: Project) -> dict[str, str]:
    """Return the visibilities that the project cannot get, and why; none for who may not change it."""
    if not access.may(requester, Action.PROJECT_UPDATE_VISIBILITY, project):
        return {}
    policies = access.directory.policies()
    problems = {level.value: visibility_problem(project, level, policies) for level in Visibility}
    return {level: problem for level, problem in problems.items() if problem is not None}


def trash_ms(access: AccessControl) -> int:
    """Return how long projects stay in the trash."""
    days: int = with_defaults(access.accounts.settings.all())["trash_days"]
    return days * DAY_MS


def refresh_runs(request: Request) -> None:
    """Have open runs read again where they are, after a change of their project. Call it in a route."""
    anyio.from_thread.run_sync(shared_services_of(request).library.refresh)
