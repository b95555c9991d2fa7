"""Artifacts by name and id, their lists, files, manifests and lineage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from runvitals.model import json_values
from runvitals.model.artifact_names import MAX_PATH
from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.artifacts.storage.rows import CollectionVersion, UnknownArtifact, Version
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
    MAX_PAGE,
    ArtifactNode,
    CollectionNode,
    FileNode,
    MembershipNode,
    SequenceNode,
    TypeNode,
    artifact_nodes,
    artifacts_of,
    collection_node,
    connection,
    may_read,
    membership_node,
    page_info,
    page_of,
    place_of,
    project_of,
    project_with,
    readable,
)
from runvitals.server.doors.wandb.artifact_requests import collection_number
from runvitals.server.doors.wandb.context import GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import (
    ProjectNode,
    RunNode,
    run_item,
    run_nodes,
    selected_fields,
)

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

ARTIFACT_READS: Final = Resolvers("artifacts")
_MAX_USERS: Final = 1000
_MAX_NAMES: Final = 500
_MAX_FILTERED: Final = 5_000
_ORDERS: Final = ("created_at", "version_index", "version")
"""All the same: versions are numbered as they are made."""

# By id


@ARTIFACT_READS.field("Query", "artifact")
def artifact(_: None, info: Info, id: str) -> ArtifactNode | None:
    """Return a version by its id; null if there is none that the requester may see."""
    context: GraphQLContext = info.context
    try:
        row = artifacts_of(context).versions.get(number_of("Artifact", id))
    except UnknownArtifact:
        return None
    project = place_of(context, row)
    return artifact_nodes(context, [row], project)[0] if may_read(context, project) else None


@ARTIFACT_READS.field("Query", "artifactCollection")
def artifact_collection(_: None, info: Info, id: str) -> CollectionNode | None:
    """Return a collection by its id."""
    context: GraphQLContext = info.context
    try:
        row = artifacts_of(context).collections.get(collection_number(id))
    except UnknownArtifact:
        return None
    return collection_node(context, row) if may_read(context, project_of(context, row)) else None


@ARTIFACT_READS.field("Query", "clientIDMapping")
def client_id_mapping(_: None, info: Info, client_id: str) -> dict[str, Any] | None:
    """Return the id of the version that a client named so before it sent it."""
    context: GraphQLContext = info.context
    row = artifacts_of(context).versions.with_client_id(client_id)
    rows = readable(context, [] if row is None else [row])
    return {"serverID": node_id("Artifact", rows[0].id)} if rows else None


# Of a project


@ARTIFACT_READS.field("Project", "artifactTypes")
def artifact_types(
    project: ProjectNode,
    info: Info,
    after: str | None = None,
    first: int | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Return the types of a project's artifacts, by name."""
    page = page_of(after, first)
    types = _types(info.context, project)
    page_types = types[page.skip : page.skip + page.limit]
    info.context.count_rows(len(page_types))
    return connection(page_types, page, len(types))


@ARTIFACT_READS.field("Project", "artifactType")
def artifact_type(project: ProjectNode, info: Info, name: str) -> TypeNode | None:
    """Return a type that artifacts of a project have."""
    return next((type_node for type_node in _types(info.context, project) if type_node.name == name), None)


def _types(context: GraphQLContext, project: ProjectNode) -> list[TypeNode]:
    if not may_read(context, project):
        return []
    types = artifacts_of(context).collections.types(project.number)
    if is_registry(project.name):  # with those that it takes and does not have yet
        allowed = set(context.metadata_store.registries.types(project.number))
        types |= dict.fromkeys(sorted(allowed - types.keys()), (0, 0))
    return [TypeNode(project, name, number, created_ms) for name, (number, created_ms) in types.items()]


@ARTIFACT_READS.field("Project", "artifactCollection")
def collection_of_project(project: ProjectNode, info: Info, name: str) -> CollectionNode | None:
    """Return a collection of a project by its name."""
    return _collection(info.context, project, name)


@ARTIFACT_READS.field("Project", "artifactCollections")
def collections_of_project(
    project: ProjectNode,
    info: Info,
    after: str | None = None,
    first: int | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Return the collections of a project, by name unless `order` says otherwise."""
    return _collections(info.context, project, None, after, first, how)


@ARTIFACT_READS.field("Project", "artifactCollectionMembership")
def membership_of_project(project: ProjectNode, info: Info, name: str) -> MembershipNode | None:
    """Return a version by its name in a project: `mnist:latest`."""
    row = _member(info.context, project, name)
    return None if row is None else membership_node(info.context, row)


@ARTIFACT_READS.field("Project", "artifact")
def artifact_of_project(
    project: ProjectNode, info: Info, name: str, enable_tracking: bool | None = None
) -> ArtifactNode | None:
    """Return a version by its name in a project: `mnist:latest`."""
    row = _member(info.context, project, name)
    return None if row is None else membership_node(info.context, row).artifact


def _member(context: GraphQLContext, project: ProjectNode, name: str) -> CollectionVersion | None:
    if not may_read(context, project):
        return None
    return artifacts_of(context).collections.member(project.number, name)


def _collection(
    context: GraphQLContext, project: ProjectNode, name: str, type: str | None = None
) -> CollectionNode | None:
    if not may_read(context, project):
        return None
    row = artifacts_of(context).collections.named(project.number, name, type)
    return None if row is None else collection_node(context, row)


def _collections(
    context: GraphQLContext,
    project: ProjectNode,
    type: str | None,
    after: str | None,
    first: int | None,
    how: dict[str, Any],
) -> dict[str, Any]:
    filters, order = how.get("filters"), how.get("order")
    holds, everything = compiled(filters, OF_COLLECTIONS), filters in (None, "", "{}") and not order
    if order:
        order_name(order, ORDERS_OF_COLLECTIONS)  # refused before the collections are read
    page = page_of(after, first)
    if not may_read(context, project):
        return connection([], page, 0)
    skip, limit = page if everything else (0, _MAX_FILTERED)
    rows, total = artifacts_of(context).collections.of_project(project.number, type, skip, limit)
    if not everything:
        _check_number("collections", total)
        rows = sorted_by([row for row in rows if holds(collection_row(row))], order, ORDERS_OF_COLLECTIONS)
        total, rows = len(rows), rows[page.skip : page.skip + page.limit]
    context.count_rows(len(rows))
    return connection([collection_node(context, row) for row in rows], page, total)


def _check_number(what: str, total: int) -> None:
    """Refuse to filter or sort too many."""
    if total > _MAX_FILTERED:
        raise InvalidArgument(f"{total:,} {what}: at most {_MAX_FILTERED:,} can be filtered or sorted")


# Of a type


@ARTIFACT_READS.field("ArtifactType", "artifactCollections")
def collections_of_type(
    type: TypeNode, info: Info, after: str | None = None, first: int | None = None, **how: Any
) -> dict[str, Any]:
    """Return the collections of a type, by name unless `order` says otherwise."""
    return _collections(info.context, type.project, type.name, after, first, how)


@ARTIFACT_READS.field("ArtifactType", "artifactCollection")
def collection_of_type(type: TypeNode, info: Info, name: str) -> CollectionNode | None:
    """Return a collection of a type by its name."""
    return _collection(info.context, type.project, name, type.name)


@ARTIFACT_READS.field("ArtifactType", "artifactSequence")
def sequence_of_type(type: TypeNode, info: Info, name: str) -> CollectionNode | None:
    """Return a sequence of a type by its name."""
    collection = _collection(info.context, type.project, name, type.name)
    return collection if isinstance(collection, SequenceNode) else None


@ARTIFACT_READS.field("ArtifactType", "artifact")
def artifact_of_type(type: TypeNode, info: Info, name: str) -> ArtifactNode | None:
    """Return a version of a type by its name: `mnist:latest`."""
    row = _member(info.context, type.project, name)
    if row is None or row.collection.type != type.name:
        return None
    return membership_node(info.context, row).artifact


# Of a collection


def _aliases(collection: CollectionNode, info: Info, **how: Any) -> dict[str, Any]:
    """Return the aliases of all versions of a collection."""
    page = page_of(how.get("after"), how.get("first"), 1000)
    names = artifacts_of(info.context).collections.aliases(collection.row.id)
    info.context.count_rows(min(len(names), page.limit))
    aliases = [
        {"id": f"ArtifactAlias:{collection.id}:{name}", "alias": name, "artifactCollection": collection}
        for name in names[page.skip : page.skip + page.limit]
    ]
    return connection(aliases, page, len(names))


def _versions(collection: CollectionNode, info: Info, **how: Any) -> dict[str, Any]:
    """Return the versions of a collection, the newest first unless `order` says otherwise."""
    context: GraphQLContext = info.context
    holds = _condition_of_versions(how.get("filters"))
    page = page_of(how.get("after"), how.get("first"))
    order = how.get("order") or "-version"
    order_name(order, _ORDERS)  # all of them are the order in which versions were logged
    table, total = artifacts_of(context).collections, collection.row.versions
    skip, limit = page if holds is None else (0, _MAX_FILTERED)
    rows = table.members(collection.row.id, skip, limit, oldest_first=not order.startswith("-"))
    if holds is not None:
        _check_number("versions", total)
        rows = [row for row in rows if holds(version_row(row))]
        total, rows = len(rows), rows[page.skip : page.skip + page.limit]
    nodes = artifact_nodes(context, [row.version for row in rows], collection.project)
    return connection(nodes, page, total, version=[f"v{row.number}" for row in rows])


def _condition_of_versions(text: str | None) -> conditions.Holds | None:
    """Return the filter of a list of versions; None for all, as clients send by themselves: the committed."""
    holds = compiled(text, OF_VERSIONS)
    return None if not text or json_values.decode(text) in ({}, {"state": "COMMITTED"}, None) else holds


def _membership(collection: CollectionNode, info: Info, alias_name: str) -> MembershipNode | None:
    """Return a version of a collection by alias or number."""
    row = artifacts_of(info.context).collections.member_of(collection.row.id, alias_name)
    return None if row is None else membership_node(info.context, row)


for _kind in ("ArtifactSequence", "ArtifactPortfolio"):
    ARTIFACT_READS.field(_kind, "aliases")(_aliases)
    ARTIFACT_READS.field(_kind, "artifacts")(_versions)
    ARTIFACT_READS.field(_kind, "artifactMembership")(_membership)


@ARTIFACT_READS.field("ArtifactSequence", "latestArtifact")
def latest_artifact(collection: CollectionNode, info: Info) -> ArtifactNode | None:
    """Return the newest version of a sequence."""
    row = artifacts_of(info.context).collections.member_of(collection.row.id, "latest")
    return None if row is None else membership_node(info.context, row).artifact


# Files


@ARTIFACT_READS.field("ArtifactCollectionMembership", "files")
def files_of_membership(membership: MembershipNode, info: Info, **how: Any) -> dict[str, Any]:
    """Return the files of a version, by path."""
    return _files(info.context, membership.artifact, **how)


@ARTIFACT_READS.field("Artifact", "files")
def files_of_artifact(artifact: ArtifactNode, info: Info, **how: Any) -> dict[str, Any]:
    """Return the files of a version, by path."""
    return _files(info.context, artifact, **how)


@ARTIFACT_READS.field("Artifact", "filesByManifestEntries")
def files_by_entries(
    artifact: ArtifactNode,
    info: Info,
    entries: Sequence[dict[str, Any]] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Return those files of a version that a client names."""
    return _files(info.context, artifact, names=[entry["name"] for entry in entries or ()])


def _files(
    context: GraphQLContext,
    artifact: ArtifactNode,
    names: Sequence[str] | None = None,
    after: str | None = None,
    first: int | None = None,
) -> dict[str, Any]:
    table, limit = artifacts_of(context).entries, max(1, min(first or 50, MAX_PAGE))
    if names is not None and len(names) > _MAX_NAMES:
        raise InvalidArgument(f"{len(names)} names of files; expected at most {_MAX_NAMES}")
    if after is not None and len(after) > MAX_PATH:
        raise InvalidArgument("invalid cursor")
    if names is not None:
        entries = [entry for entry in table.named(artifact.row.id, names) if entry.path > (after or "")]
        total = len(entries)
    else:
        entries, total = table.page(artifact.row.id, after or "", limit + 1), artifact.row.files
    page_entries = entries[:limit]
    context.count_rows(len(page_entries))
    edges = [{"node": FileNode(artifact, entry, context), "cursor": entry.path} for entry in page_entries]
    end = page_entries[-1].path if page_entries else None
    return {"totalCount": total, "edges": edges, "pageInfo": page_info(end, len(entries) > limit)}


# Lineage


@ARTIFACT_READS.field("Artifact", "artifactMemberships")
def memberships(artifact: ArtifactNode, info: Info) -> dict[str, Any]:
    """Return the collections that have a version, as far as the requester may see them."""
    context: GraphQLContext = info.context
    rows = [row for row in artifact.memberships if may_read(context, project_of(context, row.collection))]
    context.count_rows(len(rows))
    edges = [{"node": MembershipNode(context, row, artifact)} for row in rows]
    return {"edges": edges, "pageInfo": page_info(None, False)}


@ARTIFACT_READS.field("Artifact", "createdBy")
def created_by(artifact: ArtifactNode, info: Info) -> RunNode | None:
    """Return the run that made a version, if the requester may see it."""
    number = artifact.row.run_id
    return next(iter(_runs(info, [] if number is None else [number])), None)


@ARTIFACT_READS.field("Artifact", "usedBy")
def used_by(artifact: ArtifactNode, info: Info, first: int | None = None) -> dict[str, Any]:
    """Return the runs that used a version, as far as the requester may see them."""
    most = max(1, min(first or _MAX_USERS, _MAX_USERS))
    numbers = artifacts_of(info.context).lineage.users(artifact.row.id, most)
    return {"edges": [{"node": node} for node in _runs(info, numbers)]}


def _runs(info: Info, numbers: Sequence[int]) -> list[RunNode]:
    """Return the nodes of runs that the requester may see."""
    context: GraphQLContext = info.context
    rows = context.metadata_store.runs.get(numbers, context.now_ms())
    nodes = []
    for number in numbers:
        row = rows.get(number)
        if row is None or row.deleted_ms is not None:
            continue
        project = project_with(context, row.project_id, row.project, row.entity)
        if project.resource is None or context.access.may(
            context.requester, Action.RUN_READ, run_item(project.resource, row)
        ):
            nodes += run_nodes(context, project, [row], selected_fields(info))
    return nodes


@ARTIFACT_READS.field("Run", "outputArtifacts")
def output_artifacts(run: RunNode, info: Info, **how: Any) -> dict[str, Any]:
    """Return the versions that a run made."""
    page = page_of(how.get("after"), how.get("first"))
    rows, total = artifacts_of(info.context).versions.made_by(run.row.id, page.skip, page.limit)
    return _readable_page(info.context, rows, page, total)


@ARTIFACT_READS.field("Run", "inputArtifacts")
def input_artifacts(run: RunNode, info: Info, **how: Any) -> dict[str, Any]:
    """Return the versions that a run used."""
    page = page_of(how.get("after"), how.get("first"))
    rows, total = artifacts_of(info.context).lineage.used_by(run.row.id, page.skip, page.limit)
    return _readable_page(info.context, rows, page, total)


def _readable_page(context: GraphQLContext, rows: Sequence[Version], page: Any, total: int) -> dict[str, Any]:
    """Return a page of versions, without those that the requester may not see."""
    page_of_rows = connection(rows, page, total)
    nodes = {node.row.id: node for node in artifact_nodes(context, readable(context, rows))}
    page_of_rows["edges"] = [
        {**edge, "node": nodes[edge["node"].id]} for edge in page_of_rows["edges"] if edge["node"].id in nodes
    ]
    return page_of_rows
