"""`/teams/{team}/registries/{registry}/members` and `…/teams`: who has a role in one of the organisation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.listing import ThePage, page_of, stored_page
from runvitals.server.http.router import Router
from runvitals.server.registry.routes.parameters import REGISTRY, NamedRegistry, TheRegistryOfPath, requires
from runvitals.server.registry.routes.registry_people import teams_of, the_team, the_user
from runvitals.server.registry.storage.registry_members import RegistryMember, RegistryRole

_MEMBER = f"{REGISTRY}/members/{{name}}"
_TEAM = f"{REGISTRY}/teams/{{name}}"
Name = Annotated[str, Path(max_length=64)]
router = Router()


class RegistryMemberRole(RequestBody):
    """The role of a member."""

    role: Literal["viewer", "member"] = Field(
        description="`viewer`: reads it; `member`: also links and sets aliases."
    )


class RegistryTeamRole(RequestBody):
    """The role of a team."""

    role: RegistryRole = Field(
        description="Of all its members; those who may only look in the team read the registry."
    )


class RegistryMemberSchema(ResponseBody):
    """A user or team with a role in a registry of the organisation."""

    name: str
    display_name: str
    role: RegistryRole
    created_ms: int = Field(description="Since when they have the role.")


RegistryMembersPage = page_body(
    "RegistryMembersPage", "A page of the members of a registry, by name.", members=list[RegistryMemberSchema]
)


RegistryTeamsPage = page_body(
    "RegistryTeamsPage",
    "A page of the teams with a role in a registry, by name.",
    teams=list[RegistryMemberSchema],
)


@router.get(f"{REGISTRY}/members", *requires("registry:read"), response_model=RegistryMembersPage)
def members(registry: TheRegistryOfPath, page: ThePage) -> dict[str, Any]:
    """The members of a registry of the organisation; that of a team has none of its own."""
    rows, total = registry.access.metadata_store.registry_members.page(
        registry.row.id, page.after_id, page.limit
    )
    return stored_page("members", [_to_response(row) for row in rows], total, page)


@router.put(_MEMBER, *requires("registry:manage_admins"), status_code=204)
def put_member(name: Name, body: RegistryMemberRole, registry: TheRegistryOfPath) -> None:
    """Add a user to a registry of the organisation, or change their role there."""
    check_has_members(registry)
    user = the_user(registry, name)
    registry.access.metadata_store.registry_members.put(
        registry.row.id, user.id, body.role, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


@router.delete(_MEMBER, *requires("registry:manage_admins"), status_code=204)
def remove_member(name: Name, registry: TheRegistryOfPath) -> None:
    """Remove a user from a registry of the organisation."""
    check_has_members(registry)
    user_id = registry.access.accounts.users.by_name(name).id
    registry.access.metadata_store.registry_members.remove(
        registry.row.id, user_id, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


@router.get(f"{REGISTRY}/teams", *requires("registry:read"), response_model=RegistryTeamsPage)
def teams(registry: TheRegistryOfPath, page: ThePage) -> dict[str, Any]:
    """The teams with a role in a registry of the organisation, without hidden ones."""
    return page_of("teams", teams_of(registry), lambda row: row.name, page, _to_response)


@router.put(_TEAM, *requires("registry:manage_admins"), status_code=204)
def put_team(name: Name, body: RegistryTeamRole, registry: TheRegistryOfPath) -> None:
    """Give the members of a team a role in a registry of the organisation, while they are members."""
    check_has_members(registry)
    registry.access.metadata_store.registry_teams.put(
        registry.row.id, the_team(registry, name), body.role, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


@router.delete(_TEAM, *requires("registry:manage_admins"), status_code=204)
def remove_team(name: Name, registry: TheRegistryOfPath) -> None:
    """Take a team its role in a registry of the organisation."""
    check_has_members(registry)
    registry.access.metadata_store.registry_teams.remove(
        registry.row.id, the_team(registry, name), registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


def _to_response(row: RegistryMember) -> dict[str, Any]:
    return {name: getattr(row, name) for name in RegistryMemberSchema.model_fields}


def check_has_members(registry: NamedRegistry) -> None:
    """Check that a registry has members of its own, as those of the organisation have.

    Raises:
        HTTPException: 422: it is a team's.
    """
    if not registry.resource.team.organisation:
        raise HTTPException(422, "the members of this registry are those of its team")
