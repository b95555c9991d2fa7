"""`/entities/{entity}/projects/{project}/members`: who was added to a project, and with which role."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.mail import team_messages
from runvitals.server.projects.storage.owned_projects import ProjectDetail, ProjectMember
from runvitals.server.runs.routes.project_parameters import PATH, TheProject
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester
from runvitals.store.errors import NotAllowed, NotFound

MemberName = Annotated[str, Path(max_length=64)]
Role = Literal["viewer", "member", "admin"]


class NewMember(RequestBody):
    """A user or service account of the team. `role` null: the role in the team."""

    name: str = Field(max_length=64)
    service_account: bool = False
    role: Role | None = None


class MemberChange(RequestBody):
    """Another role for a member."""

    role: Role | None = Field(description="null: the role in the team.")


class ProjectMemberSchema(ResponseBody):
    """Who was added to a project: a user, or a service account."""

    name: str
    display_name: str
    service_account: bool
    role: Role | None = Field(description="None: the role in the team.")
    custom_role: str | None
    created_ms: int


ProjectMembersPage = page_body(
    "ProjectMembersPage", "A page of members, by name.", members=list[ProjectMemberSchema]
)


router = Router()


@router.get(f"{PATH}/members", needs("project:read"), response_model=ProjectMembersPage)
def members(project: TheProject, access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """Who was added to a project, by name. In a team's project, others have their role in the team."""
    # A public project, or a link to one, does not show who works in the team.
    if not access.may(requester, Action.TEAM_READ, access.directory.entity(project.entity_id)):
        raise HTTPException(403, "only members of the team see who was added to its projects")
    rows = sorted(access.accounts.owned_projects.members(project.id), key=_sort_key)
    return page_of("members", rows, _sort_key, page)


@router.post(f"{PATH}/members", needs("project:manage_members"), status_code=201)
def add_member(
    project: TheProject, new: NewMember, access: TheAccess, requester: TheRequester
) -> ProjectMemberSchema:
    """Add a member of the team, or a service account, to a project; or change the role of one."""
    if new.service_account and new.role is not None:
        raise InvalidFields({"role": "a service account has its own role"})
    user_id, account_id = _ids_of(access, project, new.name, new.service_account)
    try:
        access.accounts.project_members.add(
            project.id,
            requester.actor,
            access.clock(),
            user_id=user_id,
            service_account_id=account_id,
            role=new.role,
        )
    except (NotAllowed, NotFound) as error:
        raise InvalidFields({"name": str(error)}) from None
    access.rights_changed()
    return _member(access, project, new.name, new.service_account)


@router.patch(f"{PATH}/members/{{member}}", needs("project:manage_members"))
def change_member(
    project: TheProject,
    member: MemberName,
    change: MemberChange,
    access: TheAccess,
    requester: TheRequester,
) -> ProjectMemberSchema:
    """Give a member of a project another role there."""
    _member(access, project, member, False)
    user_id, _ = _ids_of(access, project, member, False)
    access.accounts.project_members.add(
        project.id, requester.actor, access.clock(), user_id=user_id, role=change.role
    )
    access.rights_changed()
    return _member(access, project, member, False)


@router.delete(f"{PATH}/members/{{member}}", needs("project:manage_members"), status_code=204)
def remove_member(
    project: TheProject,
    member: MemberName,
    access: TheAccess,
    requester: TheRequester,
    service_account: bool = False,
) -> None:
    """Remove a member from a project, not from the team."""
    user_id, account_id = _ids_of(access, project, member, service_account)
    access.accounts.project_members.remove(
        project.id, requester.actor, access.clock(), user_id=user_id, service_account_id=account_id
    )
    access.rights_changed()


@router.post(f"{PATH}/join", needs("project:join"), status_code=201)
def join_project(
    project: TheProject, access: TheAccess, requester: TheRequester, notices: TheNotices
) -> ProjectMemberSchema:
    """Add oneself to a restricted project: for administrators of its team."""
    if not isinstance(requester.principal, User):
        raise HTTPException(403, "only a user can join a project")
    access.accounts.project_members.add(
        project.id, requester.actor, access.clock(), user_id=requester.principal.id
    )
    access.rights_changed()
    if project.owner_id is not None and project.owner_id != requester.user_id:
        joined = team_messages.administrator_joined_project(project.entity, project.name, requester.name)
        notices.to_user(project.owner_id, joined)
    return _member(access, project, requester.name, False)


def _ids_of(
    access: AccessControl, project: ProjectDetail, name: str, service: bool
) -> tuple[int | None, int | None]:
    """The id of a user or of a service account."""
    try:
        if not service:
            return access.accounts.users.by_name(name).id, None
        for team_id in (project.entity_id, None):
            try:
                return None, access.accounts.service_accounts.by_name(name, team_id).id
            except NotFound:
                if team_id is None:
                    raise
    except (NotAllowed, NotFound) as error:
        raise InvalidFields({"name": str(error)}) from None
    raise AssertionError("unreachable")


def _member(access: AccessControl, project: ProjectDetail, name: str, service: bool) -> ProjectMemberSchema:
    for row in access.accounts.owned_projects.members(project.id):
        if (row.name, row.service_account) == (name, service):
            return ProjectMemberSchema.model_validate(row)
    raise HTTPException(404, f"there is no member {name!r} of the project")


def _sort_key(row: ProjectMember) -> str:
    return f"{int(row.service_account)}{row.name}"
