"""Registries with their collections and versions, as `wandb.Api().registries()` lists and filters them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runvitals.model.errors import UnknownProject
from runvitals.model.registry_names import PREFIX, project_of_registry
from runvitals.server.access.resources import Visibility
from runvitals.server.artifacts.storage.collections import MEMBER_ORDERS
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion
from runvitals.server.doors.wandb import registry_filters as conditions
from runvitals.server.doors.wandb.artifact_lists import (
    OF_COLLECTIONS,
    OF_VERSIONS,
    ORDERS_OF_COLLECTIONS,
    collection_row,
    compiled,
    order_name,
    sorted_by,
    version_row,
)
from runvitals.server.doors.wandb.artifact_nodes import (
    MembershipNode,
    artifact_nodes,
    artifacts_of,
    collection_node,
    connection,
    may_read,
    page_info,
    page_of,
    project_of,
    project_with,
)
from runvitals.server.doors.wandb.context import EntityNode, GraphQLContext
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode, find_project, iso_time
from runvitals.server.registry.storage.registries import RegistryRow

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

REGISTRY_READS: Final = Resolvers("registry_reads")
_MAX_COLLECTIONS: Final = 5_000
_MAX_SCANNED: Final = 2_000
"""Versions that one page is looked for in."""
_ACCESS: Final[Mapping[Visibility, str]] = {
    Visibility.PRIVATE: "RESTRICTED",
    Visibility.RESTRICTED: "RESTRICTED",
    Visibility.TEAM: "PRIVATE",
    Visibility.ORGANISATION: "PRIVATE",
    Visibility.PUBLIC: "USER_READ",
    Visibility.OPEN: "USER_WRITE",
}
"""The visibility of a project, in the words of clients."""
_OF_REGISTRIES: Final[Mapping[str, conditions.Convert]] = {
    "id": conditions.number,
    "project_id": conditions.number,
    "entity_id": conditions.number,
    "name": conditions.text,
    "description": conditions.text,
    "created_at": conditions.time,
    "updated_at": conditions.time,
}
_ORDERS_OF_REGISTRIES: Final[Mapping[str, Callable[[_Registry], Any]]] = {
    "name": lambda registry: registry.project.name,
    "created_at": lambda registry: registry.row.created_ms,
    "updated_at": lambda registry: registry.row.changed_ms,
}


class _Registry(NamedTuple):
    project: ProjectNode
    row: RegistryRow


@REGISTRY_READS.field("Entity", "project")
def project_of_entity(node: EntityNode, info: Info, name: str | None = None) -> ProjectNode | None:
    """Return a project of a team or user by its name; null if there is none that the requester may read."""
    return find_project(info.context, name, node.name)


@REGISTRY_READS.field("Entity", "projects")
def registries(
    node: EntityNode,
    info: Info,
    filters: str | None = None,
    order: str | None = None,
    after: str | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    """Return a page of the registries that the requester may read, by name."""
    page = page_of(after, first)
    registries = sorted_by(_registries(info.context, node, filters), order, _ORDERS_OF_REGISTRIES)
    projects = [registry.project for registry in registries[page.skip : page.skip + page.limit]]
    info.context.count_rows(len(projects))
    return connection(projects, page, len(registries))


@REGISTRY_READS.field("Entity", "artifactCollections")
def collections_of_registries(
    node: EntityNode,
    info: Info,
    project_filters: str | None = None,
    filters: str | None = None,
    collection_types: Sequence[str] | None = None,
    order: str | None = None,
    after: str | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    """Return a page of the collections of registries, by name. Registries have portfolios only."""
    context: GraphQLContext = info.context
    page = page_of(after, first)
    if collection_types is not None and "PORTFOLIO" not in collection_types:
        return connection([], page, 0)
    collections = sorted_by(
        _collections(context, node, project_filters, filters), order, ORDERS_OF_COLLECTIONS
    )
    page_rows = collections[page.skip : page.skip + page.limit]
    context.count_rows(len(page_rows))
    return connection([collection_node(context, row) for row in page_rows], page, len(collections))


@REGISTRY_READS.field("Entity", "artifactMemberships")
def versions_of_registries(
    node: EntityNode,
    info: Info,
    project_filters: str | None = None,
    collection_filters: str | None = None,
    filters: str | None = None,
    order: str | None = None,
    after: str | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    """Return a page of the versions in registries; without an order, as they were linked.

    The cursor counts those that were looked at, so a page may be empty and not the last one.
    """
    context: GraphQLContext = info.context
    page = page_of(after, first)
    holds = compiled(filters, OF_VERSIONS)
    collections = _collections(context, node, project_filters, collection_filters)
    rows = artifacts_of(context).collections.members_of_all(
        [collection.id for collection in collections],
        page.skip,
        _MAX_SCANNED,
        order_name(order, MEMBER_ORDERS) if order else None,
        descending=bool(order) and str(order).startswith("-"),
    )
    versions: list[CollectionVersion] = []
    looked_at = 0
    for row in rows:
        if len(versions) == page.limit:
            break
        looked_at += 1
        if row.version.state == "committed" and holds(version_row(row)):
            versions.append(row)
    has_more = looked_at < len(rows) or len(rows) == _MAX_SCANNED
    edges = [{"node": membership, "cursor": None} for membership in _membership_nodes(context, versions)]
    return {"edges": edges, "pageInfo": page_info(str(page.skip + looked_at), has_more)}


@REGISTRY_READS.field("Organization", "advancedRegistryFeatures")
async def advanced_registry_features(_: object, info: Info) -> dict[str, bool]:
    """Return that versions in registries can be sorted and filtered by their sizes."""
    return {"advancedSearch": True}


@REGISTRY_READS.field("Project", "updatedAt")
def project_updated_at(node: ProjectNode, info: Info) -> str | None:
    """Return when a collection of a registry last changed; null for other projects."""
    if not node.name.startswith(PREFIX):
        return None
    return iso_time(info.context.metadata_store.registries.get(node.number).changed_ms)


@REGISTRY_READS.field("Project", "allowAllArtifactTypesInRegistry")
def allows_all_types(node: ProjectNode, info: Info) -> bool:
    """Return whether artifacts of all types can be linked to a registry."""
    return not info.context.metadata_store.registries.types(node.number)


@REGISTRY_READS.field("Project", "access")
async def project_access(node: ProjectNode, info: Info) -> str | None:
    """Return who sees the project, in wandb's words."""
    return None if node.resource is None else _ACCESS[node.resource.visibility]


def _registries(context: GraphQLContext, node: EntityNode, filters: str | None) -> list[_Registry]:
    """Return the registries of a team or user that match a filter and that the requester may read."""
    holds = compiled(filters, _OF_REGISTRIES)
    rows = context.metadata_store.registries.of_entity(node.number)
    context.count_rows(len(rows))
    registries = []
    for row in rows:
        try:
            project = project_with(context, row.id, project_of_registry(row.name), node.name)
        except UnknownProject:  # deleted a moment ago
            continue
        if may_read(context, project) and holds(_registry_row(project, row)):
            registries.append(_Registry(project, row))
    return registries


def _collections(
    context: GraphQLContext, node: EntityNode, project_filters: str | None, filters: str | None
) -> list[Collection]:
    """Return the collections of registries that fulfil filters, by name.

    Raises:
        InvalidArgument: the registries have too many.
    """
    holds = compiled(filters, OF_COLLECTIONS)
    projects = [registry.project.number for registry in _registries(context, node, project_filters)]
    rows = artifacts_of(context).collections.portfolios(projects, _MAX_COLLECTIONS + 1)
    if len(rows) > _MAX_COLLECTIONS:
        raise InvalidArgument(
            f"the registries have more than {_MAX_COLLECTIONS:,} collections: name one in the filter"
        )
    context.count_rows(len(rows))
    return [row for row in rows if holds(collection_row(row))]


def _membership_nodes(context: GraphQLContext, rows: Sequence[CollectionVersion]) -> list[MembershipNode]:
    """Return versions in collections whose projects the requester may read."""
    by_project: dict[int, list[CollectionVersion]] = {}
    for row in rows:
        by_project.setdefault(row.collection.project_id, []).append(row)
    nodes: dict[int, MembershipNode] = {}
    for members in by_project.values():
        project = project_of(context, members[0].collection)
        artifacts = artifact_nodes(context, [row.version for row in members], project)
        for row, artifact in zip(members, artifacts, strict=True):
            nodes[row.id] = MembershipNode(context, row, artifact)
    return [nodes[row.id] for row in rows]


def _registry_row(project: ProjectNode, row: RegistryRow) -> conditions.Row:
    return {
        "id": row.id,
        "project_id": row.id,
        "entity_id": project.entity.number,
        "name": project.name,
        "description": row.description,
        "created_at": row.created_ms,
        "updated_at": row.changed_ms,
    }
