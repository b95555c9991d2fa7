"""`/teams/{team}/registries`: registries, their administrators and protected aliases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from runvitals.model.account_names import ORGANISATION
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity, Registry
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.listing import PageRequest, ThePage, page_of, stored_page
from runvitals.server.http.router import Router
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.registry.routes.parameters import (
    REGISTRY,
    REGISTRY_ACTIONS,
    TEAM,
    NamedRegistry,
    TheRegistryOfPath,
    requires,
)
from runvitals.server.registry.routes.registry_people import who_may_administer
from runvitals.server.registry.storage.registries import RegistryRow
from runvitals.server.service_parameters import TheAccess, TheRequester

Text = Annotated[str, Query(description="Part of the name or description.", max_length=200)]
Alias = Annotated[str, Path(max_length=256)]
Types = Annotated[
    list[Annotated[str, Field(max_length=128)]],
    Field(max_length=100, description="The types of artifacts that can be linked; none: all."),
]
Sort = Literal["name", "-name", "-changed_ms", "-created_ms", "-versions"]
router = Router()


class NewRegistry(RequestBody):
    """A registry to be created."""

    name: str = Field(min_length=1, max_length=128)
    description: str = Field("", max_length=20_000)
    visibility: Literal["team", "organisation", "restricted"] | None = Field(
        None,
        description="Who reads it. Of a team: `team`, or `organisation` for administrators. Of the "
        "organisation: `organisation`, or `restricted`: its members.",
    )
    types: Types = []


class RegistryChanges(RequestBody):
    """Fields that are left out do not change. All but the description are for administrators."""

    name: str | None = Field(None, min_length=1, max_length=128)
    types: Types | None = None
    description: str | None = Field(None, max_length=20_000)
    visibility: Literal["team", "organisation", "restricted"] | None = None


class RegistrySchema(ResponseBody):
    """A registry: collections of versions that were linked to it."""

    name: str
    entity: str | None = Field(description="The team or user that keeps it, or `organisation`.")
    description: str
    visibility: str = Field(
        description="Who reads it: `team`, `organisation`, or `restricted`: the members of the registry."
    )
    created_ms: int
    changed_ms: int
    collections: int
    versions: int


class RegistriesPage(ResponseBody):
    """A page of registries, by name."""

    registries: list[RegistrySchema]
    total: int
    next: str | None
    may: list[str] = Field(description="What the requester may do with a new registry of the team.")


class RegistryDetail(RegistrySchema):
    """A registry with its rules."""

    protected_aliases: list[str]
    types: list[str] = Field(description="The types of artifacts that can be linked; none: all.")
    admins: list[str] = Field(description="User names.")
    open_requests: int
    may: list[str]


class RegistryAdminSchema(ResponseBody):
    """A user who administers a registry."""

    name: str
    display_name: str
    created_ms: int = Field(description="Since when.")


RegistryAdminsPage = page_body(
    "RegistryAdminsPage",
    "A page of the administrators of a registry, by name.",
    admins=list[RegistryAdminSchema],
)


def _page(
    access: AccessControl,
    requester: Requester,
    page: PageRequest,
    entity_id: int | None,
    text: str,
    sort: str,
    owner: Entity | None,
) -> dict[str, Any]:
    readable = access.directory.readable_runs(requester.principal)
    projects = None if readable is None else readable.projects
    table = access.metadata_store.registries
    rows, total = table.page(projects, entity_id, text, page.after_id, page.limit, sort)
    may = [] if owner is None else access.may_list(requester, Registry(0, owner), REGISTRY_ACTIONS)
    return {**stored_page("registries", [_registry(row) for row in rows], total, page), "may": may}


def _registry(row: RegistryRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in RegistrySchema.model_fields}


@router.get("/registries", needs("filtered registry:read"), with_accounts(), response_model=RegistriesPage)
def all_registries(
    access: TheAccess, requester: TheRequester, page: ThePage, text: Text = "", sort: Sort = "name"
) -> dict[str, Any]:
    """The registries that the requester may read: of their teams, and those that all may read.

    `may` is about the organisation.
    """
    return _page(access, requester, page, None, text, sort, access.directory.owner_named(ORGANISATION))


@router.get(TEAM, needs("filtered registry:read"), with_accounts(), response_model=RegistriesPage)
def registries(
    team: str,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    text: Text = "",
    sort: Sort = "name",
) -> dict[str, Any]:
    """The registries of a team, or of the `organisation`, that the requester may read."""
    owner = access.directory.owner_named(team)
    if owner is None or not (owner.organisation or access.may(requester, Action.TEAM_PROFILE, owner)):
        access.hide(requester, f"team {team!r}")
    return _page(access, requester, page, owner.id, text, sort, owner)


@router.post(TEAM, *requires("registry:link"), response_model=RegistryDetail, status_code=201)
def create(
    body: NewRegistry, team: str, access: TheAccess, requester: TheRequester, response: Response
) -> dict[str, Any]:
    """Create an empty registry."""
    owner = access.directory.owner_named(team)
    if owner is None:
        access.hide(requester, f"team {team!r}")
    visibility = body.visibility or ("organisation" if owner.organisation else "team")
    _check_visibility(owner, visibility)
    if visibility != "team":
        access.require(requester, Action.REGISTRY_MANAGE_ADMINS, Registry(0, owner), f"team {team!r}")
    now_ms, table = access.clock(), access.metadata_store.registries
    number = access.accounts.ensure_organisation(now_ms) if owner.organisation else owner.id
    with checking("name"):
        row = table.create(
            ProjectOwner(number, requester.user_id, visibility),
            body.name,
            body.description,
            now_ms,
            Changer(requester.actor),
            body.types,
        )
    access.rights_changed()
    response.headers["location"] = f"/api/v1/teams/{team}/registries/{row.name}"
    resource = registry_of(access.directory.project(row.id))
    return _detail(NamedRegistry(row, resource, access, requester))


def _check_visibility(owner: Entity, visibility: str) -> None:
    allowed = ("organisation", "restricted" if owner.organisation else "team")
    if visibility not in allowed:
        raise InvalidFields({"visibility": f"expected one of {', '.join(allowed)}"})


def _detail(registry: NamedRegistry) -> dict[str, Any]:
    store = registry.access.metadata_store
    _, waiting = store.alias_requests.page(registry.row.id, "open", None, 0, 1)
    return {
        **_registry(registry.row),
        "protected_aliases": store.registries.protected(registry.row.id),
        "types": store.registries.types(registry.row.id),
        "admins": store.registries.admin_names(registry.row.id),
        "open_requests": waiting,
        "may": registry.access.may_list(registry.requester, registry.resource, REGISTRY_ACTIONS),
    }


@router.get(REGISTRY, *requires("registry:read"), response_model=RegistryDetail)
def registry(registry: TheRegistryOfPath) -> dict[str, Any]:
    """A registry with its administrators and protected aliases."""
    return _detail(registry)


@router.patch(REGISTRY, *requires("registry:link"), response_model=RegistryDetail)
def change(body: RegistryChanges, registry: TheRegistryOfPath) -> dict[str, Any]:
    """Describe a registry; its administrators and those of its owner change the rest."""
    if body.visibility is not None:
        _check_visibility(registry.resource.team, body.visibility)
    if body.model_fields_set - {"description"}:
        what = f"registry {registry.row.name!r}"
        registry.access.require(registry.requester, Action.REGISTRY_MANAGE_ADMINS, registry.resource, what)
    changes = body.model_dump(exclude_none=True)
    with checking("name" if body.name is not None else "description"):
        row = registry.access.metadata_store.registries.change(
            registry.row.id, registry.now_ms, registry.changer, **changes
        )
    registry.access.rights_changed()
    resource = registry_of(registry.access.directory.project(row.id))
    return _detail(NamedRegistry(row, resource, registry.access, registry.requester))


@router.delete(REGISTRY, *requires("registry:manage_admins"), status_code=204)
def delete(registry: TheRegistryOfPath) -> None:
    """Delete a registry with its collections; versions stay in the projects that logged them."""
    registry.access.metadata_store.registries.delete(registry.row.id, registry.now_ms, registry.changer)
    registry.access.rights_changed()


# Administrators


@router.get(f"{REGISTRY}/admins", *requires("registry:read"), response_model=RegistryAdminsPage)
def admins(registry: TheRegistryOfPath, page: ThePage) -> dict[str, Any]:
    """The administrators of a registry."""
    rows = registry.access.metadata_store.registries.admins(registry.row.id)
    return page_of("admins", rows, lambda row: row.name, page)


@router.put(f"{REGISTRY}/admins/{{name}}", *requires("registry:manage_admins"), status_code=204)
def add_admin(name: Annotated[str, Path(max_length=64)], registry: TheRegistryOfPath) -> None:
    """Make a member of the team an administrator; in a registry of the organisation, any user who writes."""
    user_id = who_may_administer(registry, name)
    registry.access.metadata_store.registries.add_admin(
        registry.row.id, user_id, name, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


@router.delete(f"{REGISTRY}/admins/{{name}}", *requires("registry:manage_admins"), status_code=204)
def remove_admin(name: Annotated[str, Path(max_length=64)], registry: TheRegistryOfPath) -> None:
    """Take a user the administration; without an administrator, those of the team appoint the next one."""
    registry.access.metadata_store.registries.remove_admin(
        registry.row.id, name, registry.now_ms, registry.changer
    )
    registry.access.rights_changed()


# Protected aliases


@router.put(f"{REGISTRY}/protected-aliases/{{alias}}", *requires("registry:protected_alias"), status_code=204)
def protect(alias: Alias, registry: TheRegistryOfPath) -> None:
    """Protect an alias in all collections: only administrators of the registry set, move and remove it."""
    with checking("alias"):
        registry.access.metadata_store.registries.protect(
            registry.row.id, alias, registry.now_ms, registry.changer
        )


@router.delete(
    f"{REGISTRY}/protected-aliases/{{alias}}", *requires("registry:protected_alias"), status_code=204
)
def unprotect(alias: Alias, registry: TheRegistryOfPath) -> None:
    """Let everybody who may link set an alias again."""
    registry.access.metadata_store.registries.unprotect(
        registry.row.id, alias, registry.now_ms, registry.changer
    )
