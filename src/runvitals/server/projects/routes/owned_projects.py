"""`/entities/{entity}/projects`: read, change, share, transfer, delete and restore projects."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import HTTPException, Query, Request, Response
from pydantic import Field

from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.directory import entity_defaults
from runvitals.server.access.decisions.policies import visibility_problem
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity, Project, Visibility
from runvitals.server.artifacts.link_refusal import refusal
from runvitals.server.artifacts.storage.rows import LinkedVersions
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.mail import team_messages
from runvitals.server.projects.routes.readable import (
    ListedProjectsPage,
    project_json,
    readable_projects,
)
from runvitals.server.projects.storage.owned_projects import checked_text
from runvitals.server.runs.routes.project_parameters import (
    PATH,
    PROJECT_RESPONSE,
    EntityName,
    TheProject,
    project_detail,
    refresh_runs,
    resource_of,
    trash_ms,
)
from runvitals.server.service_parameters import TheAccess, TheNotices, TheOutsideServices, TheRequester
from runvitals.store.errors import NotFound

_NEEDS = {
    "overview": Action.PROJECT_UPDATE_OVERVIEW,
    "visibility": Action.PROJECT_UPDATE_VISIBILITY,
    "owner": Action.PROJECT_MANAGE_MEMBERS,
}


class EntityProjectChanges(RequestBody):
    """Changes; a field that is left out stays as it is. `owner`: a member of the team; null: nobody."""

    name: str | None = Field(None, max_length=256)
    description: str | None = Field(None, max_length=1000)
    overview: str | None = Field(None, max_length=40_000, description="Markdown.")
    visibility: Visibility | None = None
    owner: str | None = Field(None, max_length=64)


class NewProject(RequestBody):
    """`visibility` null: the default of the team; in a user's own space only for that user.

    `owner` null: the requester; another one for those who manage the members of projects.
    """

    name: str = Field(max_length=256)
    description: str = Field("", max_length=1000)
    visibility: Visibility | None = None
    owner: str | None = Field(None, max_length=64)


class TrashedProject(ResponseBody):
    """A project that went to the trash with its runs."""

    project: str
    entity: str
    runs: int
    purged_ms: int = Field(description="Until when it can be restored.")


class ProjectDefaults(ResponseBody):
    """Defaults of clients in a team or space."""

    code_saving: bool
    visibility: Visibility | None = Field(description="Of new projects.")


class Transfer(RequestBody):
    """Who gets a project."""

    entity: Annotated[str, Field(max_length=64, description="A team or user.")]


router = Router()


@router.get(
    "/entities/{entity}/projects",
    needs("filtered project:read"),
    response_model=ListedProjectsPage,
    response_model_exclude_unset=True,
)
def projects(
    entity: EntityName,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    deleted: Annotated[bool, Query(description="Those in the trash that the requester may restore.")] = False,
    text: Annotated[str, Query(description="Part of the name.", max_length=200)] = "",
) -> dict[str, Any]:
    """The projects of a team or user that the requester may read, by name."""
    owner = access.directory.entity_named(entity)
    readable = [] if owner is None else readable_projects(access, requester, owner.id, deleted)
    matching = (row for row in readable if text.casefold() in row.name.casefold())
    rows = sorted(matching, key=lambda row: row.name)
    return page_of("projects", rows, lambda row: row.name, page, partial(project_json, entity))


@router.post("/entities/{entity}/projects", needs("project:create"), status_code=201, **PROJECT_RESPONSE)
def create_project(
    entity: EntityName,
    new: NewProject,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    response: Response,
) -> dict[str, Any]:
    """Create an empty project. Sending a run to a new project creates it too."""
    home = access.directory.entity_named(entity)
    if home is None:
        access.hide(requester, f"team or user {entity!r}")
    owner_id = requester.user_id
    if new.owner is not None and new.owner != requester.name:
        what = f"project {new.name!r}"
        access.require(requester, Action.PROJECT_MANAGE_MEMBERS, Project(0, home, owner_id=owner_id), what)
        owner_id = _owner_id(access, home, entity, new.owner)
    if new.visibility is not None:
        _check_rules(Project(0, home, owner_id=owner_id), new.visibility, access)
    for field, text in (("name", new.name), ("description", new.description)):
        with checking(field):
            _check_field(field, text)
    row = access.accounts.owned_projects.create(
        home.id,
        new.name,
        requester.actor,
        access.clock(),
        owner_id=owner_id,
        visibility=None if new.visibility is None else new.visibility.value,
        description=new.description,
    )
    access.rights_changed()
    response.headers["location"] = f"/api/v1/entities/{quote(entity)}/projects/{quote(row.name, safe='')}"
    return project_detail(access, requester, row.id, outside)


@router.get(PATH, needs("project:read"), **PROJECT_RESPONSE)
def read_project(
    project: TheProject, access: TheAccess, requester: TheRequester, outside: TheOutsideServices
) -> dict[str, Any]:
    """A project, and what the requester may do with it."""
    return project_detail(access, requester, project.id, outside)


@router.patch(PATH, needs("project:read", or_else="project:update_visibility"), **PROJECT_RESPONSE)
def change_project(
    project: TheProject,
    changes: EntityProjectChanges,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    notices: TheNotices,
    request: Request,
) -> dict[str, Any]:
    """Change a project. Each field needs a right of its own; all changes are made, or none.

    Administrators may open a project that they cannot read, such as a private one whose owner has left.
    """
    sent = changes.model_dump(exclude_unset=True)
    resource, what = resource_of(access, project), f"project {project.name!r}"
    for field in sent:
        access.require(requester, _NEEDS.get(field, Action.PROJECT_UPDATE), resource, what)
    fields: dict[str, Any] = {field: value for field, value in sent.items() if value is not None}
    for field in fields.keys() & {"name", "description", "overview"}:
        with checking(field):
            _check_field(field, fields[field])
    if changes.visibility is not None:
        _check_rules(resource, changes.visibility, access)
        fields["visibility"] = changes.visibility.value
    if "owner" in sent:
        fields.pop("owner", None)
        fields["owner_id"] = project.owner_id
        if changes.owner != project.owner:
            fields["owner_id"] = _owner_id(access, resource.entity, project.entity, changes.owner)
    changed = access.accounts.owned_projects.update(project.id, requester.actor, access.clock(), **fields)
    access.rights_changed()
    refresh_runs(request)
    if changed.visibility != project.visibility:
        message = team_messages.visibility_changed(
            changed.entity, changed.name, requester.mail_name, changed.visibility
        )
        notices.to_project_administrators(changed, message, but=requester.user_id)
    return project_detail(access, requester, project.id, outside)


@router.delete(PATH, needs("project:delete"), response_model=TrashedProject, status_code=202)
def delete_project(
    project: TheProject, access: TheAccess, requester: TheRequester, request: Request
) -> dict[str, Any]:
    """Move a project to the trash with all its runs. It can be restored until `purged_ms`.

    While other projects have versions that are linked to theirs, these must be unlinked first: 409.
    """
    now_ms, projects = access.clock(), access.accounts.owned_projects
    try:
        runs = access.metadata_store.artifacts.dependents.delete_project(
            project.id, lambda: projects.trash(project.id, requester.actor, now_ms)
        )
    except LinkedVersions as error:
        raise refusal(access, requester, "the project", error) from None
    access.rights_changed()
    refresh_runs(request)
    return {
        "project": project.name,
        "entity": project.entity,
        "runs": runs,
        "purged_ms": now_ms + trash_ms(access),
    }


@router.post(f"{PATH}/restore", needs("project:delete"), **PROJECT_RESPONSE)
def restore_project(
    project: TheProject,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    request: Request,
) -> dict[str, Any]:
    """Take a project out of the trash, with the runs that went there with it."""
    if project.deleted_ms is None:
        raise HTTPException(409, f"the project {project.name!r} is not in the trash")
    access.accounts.owned_projects.restore(project.id, requester.actor, access.clock())
    access.rights_changed()
    refresh_runs(request)
    return project_detail(access, requester, project.id, outside)


@router.post(f"{PATH}/transfer", needs("project:transfer"), **PROJECT_RESPONSE)
def transfer_project(
    project: TheProject,
    transfer: Transfer,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    request: Request,
) -> dict[str, Any]:
    """Give a project to another team, or to the requester's own space.

    Members who are not in the new team lose their role in the project.
    """
    target = access.directory.entity_named(transfer.entity)
    what = f"team or user {transfer.entity!r}"
    if target is None:
        access.hide(requester, what)
    if access.may(requester, Action.TEAM_PROFILE, target):
        # Who sees a team may know why it is refused, which `require` would hide from those who are not in it.
        needed = f"it needs the permission {Action.PROJECT_TRANSFER.value} for {what}"
        if not access.may(requester, Action.PROJECT_TRANSFER, target):
            raise HTTPException(403, f"you may not do this: {needed}")
    access.require(requester, Action.PROJECT_TRANSFER, target, what)
    if target.owner_id is not None and project.visibility == Visibility.RESTRICTED.value:
        raise HTTPException(409, "a restricted project must be opened to its team first")
    access.accounts.project_members.transfer(project.id, target.id, requester.actor, access.clock())
    access.rights_changed()
    refresh_runs(request)
    return project_detail(access, requester, project.id, outside)


@router.put(f"{PATH}/star", needs("project:read"), status_code=204)
def star(project: TheProject, access: TheAccess, requester: TheRequester) -> None:
    """Mark a project with a star, for the requester alone."""
    access.accounts.owned_projects.set_star(project.id, _user_id(requester), True)


@router.delete(f"{PATH}/star", needs("project:read"), status_code=204)
def unstar(project: TheProject, access: TheAccess, requester: TheRequester) -> None:
    """Remove the star."""
    access.accounts.owned_projects.set_star(project.id, _user_id(requester), False)


def _check_field(field: str, text: str) -> None:
    """Check a text of a project; raise ValueError if it is invalid, or the name that of a registry."""
    checked = checked_text(field, text)
    if field == "name" and is_registry(checked):
        raise ValueError(f"invalid project name {checked!r}: only registries are called so")


def _check_rules(resource: Project, visibility: Visibility, access: AccessControl) -> None:
    """Raise unless a project may get this visibility: 403, 409 or 422."""
    policies = access.directory.policies()
    problem = visibility_problem(resource, visibility, policies)
    if problem is None:
        return
    beyond = visibility in (Visibility.PUBLIC, Visibility.OPEN)
    switched_off = beyond and not (policies.public_projects and resource.entity.public_projects)
    if switched_off:
        raise HTTPException(403, problem)
    if beyond:
        raise HTTPException(409, problem)
    raise InvalidFields({"visibility": problem})


def _owner_id(access: AccessControl, home: Entity, entity: str, owner: str | None) -> int | None:
    """Return the id of who is to own a project: a member of its team, or the user whose space it is in."""
    if owner is None:
        return None
    try:
        user_id = access.accounts.users.by_name(owner).id
        return user_id if user_id == home.owner_id else access.accounts.members.get(entity, owner).user_id
    except NotFound:
        raise InvalidFields({"owner": f"{owner} is not a member of the team"}) from None


def _user_id(requester: Requester) -> int:
    if not isinstance(requester.principal, User):
        raise HTTPException(403, "only a user can mark projects")
    return requester.principal.id


@router.get("/entities/{entity}/defaults", needs("team:read"), response_model=ProjectDefaults)
def defaults(entity: EntityName, access: TheAccess) -> Any:
    """Return whether clients save code, and the visibility of new projects."""
    number = access.accounts.entity_id(entity)
    facts = None if number is None else access.accounts.entity(number)
    if facts is None:
        raise NotFound(f"there is no team or user {entity!r}")
    return entity_defaults(access.accounts, facts)
