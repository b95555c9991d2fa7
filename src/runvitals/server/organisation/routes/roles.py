"""`/organisation/roles`: custom roles, which every user may read and administrators make."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast
from urllib.parse import quote

from fastapi import Path, Response
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.custom_roles import CustomRole, custom_role
from runvitals.server.access.decisions.matrix import CUSTOM_ACTIONS
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Organisation
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.organisation.storage.roles import RoleRow
from runvitals.server.service_parameters import TheAccess, TheRequester

MAX_PERMISSIONS = 100
RoleName = Annotated[str, Path(max_length=64)]
Permissions = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=MAX_PERMISSIONS)]


class NewRole(RequestBody):
    """A custom role to be created."""

    name: str = Field(max_length=200)
    description: str = Field("", max_length=1000)
    base: Literal["viewer", "member"]
    permissions: Permissions = Field(description="Actions that the role adds to its base.")


class RoleChanges(RequestBody):
    """Fields that are left out do not change."""

    name: str | None = Field(None, max_length=200)
    description: str | None = Field(None, max_length=1000)
    base: Any = Field(None, description="It cannot be changed: 422.")
    permissions: Permissions | None = None


class CustomRoleSchema(ResponseBody):
    """A custom role."""

    id: int
    name: str
    description: str
    base: Literal["viewer", "member"]
    permissions: list[str] = Field(description="Actions that it adds to its base.")
    people: int = Field(description="How many memberships have it.")
    teams: int = Field(description="In how many teams.")


class RolesPage(ResponseBody):
    """A page of roles, the actions that one may add, and what the requester may do with roles."""

    roles: list[CustomRoleSchema]
    total: int
    next: str | None
    permissions: list[str]
    may: list[str]


class DeletedRole(ResponseBody):
    """How many people had the role."""

    people: int


router = Router()


@router.get("/organisation/roles", needs("org:role_read"), response_model=RolesPage)
def roles(access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The custom roles by name, and the actions that one may add (`permissions`)."""
    rows = sorted(access.accounts.roles.all(), key=lambda row: row.name.casefold())
    listed = page_of("roles", rows, lambda row: row.name.casefold(), page, _to_schema)
    may = access.may_list(requester, Organisation(), frozenset((Action.ORG_ROLE_MANAGE,)))
    return {**listed, "permissions": sorted(action.value for action in CUSTOM_ACTIONS), "may": may}


@router.post("/organisation/roles", needs("org:role_manage"), status_code=201)
def create_role(
    new: NewRole, access: TheAccess, requester: TheRequester, response: Response
) -> CustomRoleSchema:
    """Create a custom role."""
    role = _check_role(new.name, new.base, new.permissions, new.description)
    row = access.accounts.roles.create(
        role.name,
        role.base.value,
        [action.value for action in role.added],
        role.description,
        requester.actor,
        access.clock(),
    )
    response.headers["location"] = f"/api/v1/organisation/roles/{quote(row.name, safe='')}"
    return _to_schema(row)


@router.patch("/organisation/roles/{role}", needs("org:role_manage"))
def change_role(
    role: RoleName, changes: RoleChanges, access: TheAccess, requester: TheRequester
) -> CustomRoleSchema:
    """Change a custom role, for everybody who has it."""
    if "base" in changes.model_fields_set:
        raise InvalidFields({"base": "the base of a role cannot be changed; create another role"})
    before = access.accounts.roles.get(role)
    name = before.name if changes.name is None else changes.name
    permissions = sorted(before.actions) if changes.permissions is None else changes.permissions
    description = before.description if changes.description is None else changes.description
    checked = _check_role(name, before.base, permissions, description)
    row = access.accounts.roles.update(
        role,
        requester.actor,
        access.clock(),
        name=checked.name,
        description=checked.description,
        actions=[action.value for action in checked.added],
    )
    access.rights_changed()
    return _to_schema(row)


@router.delete("/organisation/roles/{role}", needs("org:role_manage"))
def delete_role(role: RoleName, access: TheAccess, requester: TheRequester) -> DeletedRole:
    """Delete a custom role. Who has it keeps its base role; the response says how many they are."""
    people = access.accounts.roles.delete(role, requester.actor, access.clock())
    access.rights_changed()
    return DeletedRole(people=people)


def _check_role(name: str, base: str, permissions: list[str], description: str) -> CustomRole:
    with checking("name"):
        custom_role(name, base, [])
    with checking("permissions"):
        custom_role(name, base, permissions)
    with checking("description"):
        return custom_role(name, base, permissions, description)


def _to_schema(row: RoleRow) -> CustomRoleSchema:
    return CustomRoleSchema(
        id=row.id,
        name=row.name,
        description=row.description,
        base=cast(Literal["viewer", "member"], row.base),
        permissions=sorted(row.actions),
        people=row.users,
        teams=row.teams,
    )
