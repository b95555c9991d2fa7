"""Registries, to which clients link versions: projects named `wandb-registry-…` of a team or user.

To clients, an organization has them. Each team and own space is one, and the organisation itself.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from runvitals.model.account_names import ORGANISATION
from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.resources import Registry
from runvitals.server.doors.wandb.artifact_requests import project_named
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext, node_id
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import OF_LINK_MODEL, ProjectNode, ensure_project
from runvitals.server.doors.wandb.viewer import UserNode, readable_entity
from runvitals.server.organisation.settings import with_defaults

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

REGISTRIES: Final = Resolvers("registries")


@REGISTRIES.field("Project", "name")
async def project_name(node: ProjectNode | dict[str, Any], info: Info) -> str:
    """Return the name of a project, which for a registry may be an older one that the client asked for."""
    name: str = node["name"] if isinstance(node, dict) else node.name
    return info.context.names_of_projects.get(name, name)


class OrganisationNode(EntityNode):
    """The organisation, under the name that it shows."""

    __slots__ = ()


def _organisation(context: GraphQLContext) -> OrganisationNode | None:
    """Return the organisation; None without accounts, or for who may not know of it."""
    owner = context.access.directory.owner_named(ORGANISATION) if context.has_accounts else None
    may = partial(context.access.may, context.requester, Action.REGISTRY_READ)
    if owner is None or not may(Registry(0, owner, shared=True)):
        return None
    settings = with_defaults(context.access.accounts.settings.all())
    return OrganisationNode(owner.id, str(settings["name"]).strip() or ORGANISATION, is_team=False)


@REGISTRIES.field("Entity", "organization")
def organization(node: EntityNode, info: Info) -> EntityNode | None:
    """Return the entity itself: its registries are in it, and whoever may read its projects may read them."""
    return _organisation(info.context) if node.name == ORGANISATION else node


@REGISTRIES.field("Entity", "user")
def user_of(node: EntityNode, info: Info) -> UserNode:
    """Return whose organizations a client looks through if it wants another than that of the entity."""
    return UserNode(node_id("User", 0), node.name, node.name, [])


class OrganizationEntity(EntityNode):
    """A team, a user's own space or the organisation, as the place of its registries."""

    __slots__ = ()

    @property
    def entity_type(self) -> str:
        """`organization`."""
        return "organization"


@REGISTRIES.field("Organization", "orgEntity")
async def org_entity(node: EntityNode, info: Info) -> OrganizationEntity:
    """Return where the registries are."""
    name = ORGANISATION if isinstance(node, OrganisationNode) else node.name
    return OrganizationEntity(node.number, name, node.is_team)


@REGISTRIES.field("Query", "organization")
def organization_named(_: None, info: Info, name: str) -> EntityNode | None:
    """Return a team, a user's own space or the organisation; null if the requester may not know of it.

    A team comes before an organisation of its name; the organisation has the name `organisation` too.
    """
    entity = None if name == ORGANISATION else readable_entity(info.context, name)
    ours = _organisation(info.context)
    return entity or (ours if ours is not None and name in (ORGANISATION, ours.name) else None)


@REGISTRIES.field("User", "organizations")
def organizations(user: UserNode, info: Info) -> list[EntityNode]:
    """Return the organisation; each entity is another one."""
    ours = _organisation(info.context)
    return [] if ours is None else [ours]


def project_for_link(context: GraphQLContext, name: str, entity_name: str | None) -> ProjectNode:
    """Return the project to which a version is linked.

    The first link to a registry or by `link_model()` makes it.

    Raises:
        HTTPException: 401, 403 or 404.
    """
    if is_registry(name) or name == OF_LINK_MODEL:
        return ensure_project(context, name, entity_name)
    return project_named(context, name, entity_name)
