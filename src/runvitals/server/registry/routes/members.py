"""`/teams/{team}/registries/{registry}/members`: members of a registry of the organisation."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.listing import ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.registry.routes.parameters import REGISTRY, NamedRegistry, TheRegistryOfPath, requires
from runvitals.server.registry.routes.registry_people import the_user
from runvitals.server.registry.storage.registry_members import RegistryRole

_MEMBER = f"{REGISTRY}/members/{{name}}"
Name = Annotated[str, Path(max_length=64)]
router = Router()


class RegistryMemberRole(RequestBody):
    """The role of a member."""

    role: RegistryRole = Field(description="`viewer`: reads it; `member`: also links and sets aliases.")


class RegistryMemberSchema(ResponseBody):
    """A member of a registry of the organisation."""

    name: str
    display_name: str
    role: RegistryRole
    created_ms: int = Field(description="Since when they have the role.")


class RegistryMembersPage(ResponseBody):
    """A page of the members of a registry, by name."""

    members: list[RegistryMemberSchema]
    total: int
    next: str | None


@router.get(f"{REGISTRY}/members", response_model=RegistryMembersPage, dependencies=requires("registry:read"))
def members(registry: TheRegistryOfPath, page: ThePage) -> dict[str, Any]:
    """The members of a registry of the organisation; that of a team has none of its own."""
    rows, total = registry.access.metadata_store.registry_members.page(
        registry.row.id, page.after_id, page.limit
    )
    names = RegistryMemberSchema.model_fields
    shown = [{name: getattr(row, name) for name in names} for row in rows]
    return stored_page("members", shown, total, page)


@router.put(_MEMBER, status_code=204, dependencies=requires("registry:manage_admins"))
def put_member(name: Name, body: RegistryMemberRole, registry: TheRegistryOfPath) -> None:
    """Add a user to a registry of the organisation, or change their role there."""
    check_has_members(registry)
    user = the_user(registry, name)
    registry.access.metadata_store.registry_members.put(
        registry.row.id, user.id, body.role, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


@router.delete(_MEMBER, status_code=204, dependencies=requires("registry:manage_admins"))
def remove_member(name: Name, registry: TheRegistryOfPath) -> None:
    """Remove a user from a registry of the organisation."""
    check_has_members(registry)
    user_id = registry.access.accounts.users.by_name(name).id
    registry.access.metadata_store.registry_members.remove(
        registry.row.id, user_id, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


def check_has_members(registry: NamedRegistry) -> None:
    """Check that a registry has members of its own, as those of the organisation have.

    Raises:
        HTTPException: 422: it is a team's.
    """
    if not registry.resource.team.organisation:
        raise HTTPException(422, "the members of this registry are those of its team")
