"""Registries, to which clients link versions: projects named `wandb-registry-…` of a team or user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runvitals.model.registry_names import is_registry
from runvitals.server.doors.wandb.artifact_requests import project_named
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import OF_LINK_MODEL, ProjectNode, ensure_project
from runvitals.server.doors.wandb.viewer import UserNode, readable_entity

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

REGISTRIES: Final = Resolvers("registries")


@REGISTRIES.field("Entity", "organization")
def organization(node: EntityNode, info: Info) -> EntityNode:
    """Return the entity itself: its registries are in it, and whoever may read its projects may read them."""
    return node


class OrganizationEntity(EntityNode):
    """A team or a user's own space, as the place of its registries."""

    __slots__ = ()

    @property
    def entity_type(self) -> str:
        """`organization`."""
        return "organization"


@REGISTRIES.field("Organization", "orgEntity")
async def org_entity(node: EntityNode, info: Info) -> OrganizationEntity:
    """Return where the registries are."""
    return OrganizationEntity(node.number, node.name, node.is_team)


@REGISTRIES.field("Query", "organization")
def organization_named(_: None, info: Info, name: str) -> EntityNode | None:
    """Return a team or a user's own space; null if the requester may not know of it."""
    return readable_entity(info.context, name)


@REGISTRIES.field("User", "organizations")
def organizations(user: UserNode, info: Info) -> list[EntityNode]:
    """Return none besides the one of each entity."""
    return []


def project_for_link(context: GraphQLContext, name: str, entity_name: str | None) -> ProjectNode:
    """Return the project to which a version is linked.

    The first link to a registry or by `link_model()` makes it.

    Raises:
        HTTPException: 401, 403 or 404.
    """
    if is_registry(name) or name == OF_LINK_MODEL:
        return ensure_project(context, name, entity_name)
    return project_named(context, name, entity_name)
