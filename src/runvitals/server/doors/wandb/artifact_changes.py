"""Changes, links and deletes artifacts and their collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runvitals.model.artifact_names import checked_metadata
from runvitals.server.access.actions import Action
from runvitals.server.doors.wandb.artifact_nodes import (
    artifact_nodes,
    artifacts_of,
    collection_node,
    membership_node,
    not_found,
    project_of,
    require,
    tag_node,
)
from runvitals.server.doors.wandb.artifact_requests import (
    Input,
    changer,
    checked_int64,
    collection_for,
    collection_named,
    delete_unlinked,
    project_named,
    record_change,
    tag_names,
    valid,
    version_for,
)
from runvitals.server.doors.wandb.context import GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.registries import project_for_link
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode
from runvitals.server.registry.rights import check_source

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

ARTIFACT_CHANGES: Final = Resolvers("artifact_changes")

# Versions


@ARTIFACT_CHANGES.field("Mutation", "updateArtifact")
def update_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Change description, metadata, tags and time to live of a version."""
    context: GraphQLContext = info.context
    row = version_for(context, input["artifact_id"], Action.ARTIFACT_UPDATE)
    if input.get("aliases") is not None:
        raise InvalidArgument("aliases are changed by addAliases and deleteAliases")
    metadata = input.get("metadata")
    row = valid(
        artifacts_of(context).versions.change,
        row.id,
        context.now_ms(),
        description=input.get("description"),
        metadata=None if metadata is None else valid(checked_metadata, metadata),
        ttl_s=checked_int64("ttlDurationSeconds", input.get("ttl_duration_seconds")),
        add_tags=tag_names(input.get("tags_to_add")),
        remove_tags=tag_names(input.get("tags_to_delete")),
    )
    return {"artifact": artifact_nodes(context, [row])[0]}


@ARTIFACT_CHANGES.field("Mutation", "deleteArtifact")
def delete_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Delete a version for good."""
    context: GraphQLContext = info.context
    row = version_for(context, input["artifact_id"], Action.ARTIFACT_DELETE)
    (node,) = artifact_nodes(context, [row])
    with_aliases = bool(input.get("delete_aliases"))
    delete_unlinked(context, artifacts_of(context).versions.delete, row.id, context.now_ms(), with_aliases)
    record_change(
        context,
        project_of(context, row.collection),
        "artifact.delete",
        f"{row.collection.name}:v{row.version}",
    )
    return {"artifact": node}


@ARTIFACT_CHANGES.field("Mutation", "addAliases")
def add_aliases(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Give a version aliases in collections that have it."""
    _change_aliases(info.context, input, adds=True)
    return {"success": True}


@ARTIFACT_CHANGES.field("Mutation", "deleteAliases")
def delete_aliases(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Take aliases from a version."""
    _change_aliases(info.context, input, adds=False)
    return {"success": True}


def _change_aliases(context: GraphQLContext, input: Input, adds: bool) -> None:
    row = version_for(context, input["artifact_id"], Action.ARTIFACT_READ)
    by_collection: dict[int, list[str]] = {}
    projects: dict[int, ProjectNode] = {}
    for alias in input["aliases"]:
        project = project_named(context, alias["project_name"], alias["entity_name"])
        require(context, Action.ARTIFACT_ALIAS, project, row.id)
        collection = collection_named(context, project, alias["artifact_collection_name"])
        by_collection.setdefault(collection.id, []).append(alias["alias"])
        projects[collection.id] = project
    table = artifacts_of(context).collections
    change = table.add_aliases if adds else table.remove_aliases
    for collection_id, aliases in by_collection.items():
        by = changer(context, projects[collection_id])
        valid(change, collection_id, row.id, aliases, context.now_ms(), by)


# Portfolios


@ARTIFACT_CHANGES.field("Mutation", "linkArtifact")
def link_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Link a version to a portfolio. Who may read the project of the portfolio may read the version there."""
    context: GraphQLContext = info.context
    number = _linked_number(context, input)
    row = version_for(context, node_id("Artifact", number), Action.ARTIFACT_READ)
    if input.get("artifact_portfolio_id"):
        target = collection_for(context, input["artifact_portfolio_id"], Action.ARTIFACT_CREATE)
        name, project = target.name, project_of(context, target)
    else:
        name = input.get("artifact_portfolio_name") or ""
        project = project_for_link(context, input.get("project_name") or "", input.get("entity_name"))
        require(context, Action.ARTIFACT_CREATE, project)
    valid(check_source, context.access, context.requester, row.collection, project.number)
    aliases = [alias["alias"] for alias in input.get("aliases") or ()]
    now_ms = context.now_ms()
    by = changer(context, project)
    membership = valid(artifacts_of(context).links.link, row.id, project.number, name, aliases, now_ms, by)
    return {"versionIndex": membership.number, "artifactMembership": membership_node(context, membership)}


def _linked_number(context: GraphQLContext, input: Input) -> int:
    if input.get("artifact_id"):
        return number_of("Artifact", input["artifact_id"])
    client_id = input.get("client_id") or ""
    version = artifacts_of(context).versions.with_client_id(client_id)
    if version is None:
        raise not_found(f"artifact {client_id[:100]!r}")
    return version.id


@ARTIFACT_CHANGES.field("Mutation", "unlinkArtifact")
def unlink_artifact(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Remove a version from a portfolio."""
    context: GraphQLContext = info.context
    target = collection_for(context, input["artifact_portfolio_id"], Action.ARTIFACT_DELETE)
    number = number_of("Artifact", input["artifact_id"])
    by = changer(context, project_of(context, target))
    valid(artifacts_of(context).links.unlink, number, target.id, context.now_ms(), by)
    return {"artifactID": input["artifact_id"], "success": True, "clientMutationId": None}


# Collections


@ARTIFACT_CHANGES.field("Mutation", "updateArtifactSequence")
def update_sequence(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Rename a sequence, or describe it."""
    return _change_collection(info.context, input["artifact_sequence_id"], input)


@ARTIFACT_CHANGES.field("Mutation", "updateArtifactPortfolio")
def update_portfolio(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Rename a portfolio, or describe it."""
    return _change_collection(info.context, input["artifact_portfolio_id"], input)


@ARTIFACT_CHANGES.field("Mutation", "moveArtifactSequence")
def move_sequence(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Change the type of the artifacts of a sequence."""
    changes = {"type": input["destination_artifact_type_name"]}
    return _change_collection(info.context, input["artifact_sequence_id"], changes)


def _change_collection(context: GraphQLContext, id: str, changes: Input) -> dict[str, Any]:
    row = collection_for(context, id, Action.ARTIFACT_UPDATE)
    values = {name: changes.get(name) for name in ("name", "description", "type")}
    changed = valid(artifacts_of(context).collections.change, row.id, context.now_ms(), **values)
    return {"artifactCollection": collection_node(context, changed)}


@ARTIFACT_CHANGES.field("Mutation", "deleteArtifactSequence")
def delete_sequence(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Delete a sequence with its versions for good."""
    return _delete_collection(info.context, input["artifact_sequence_id"])


@ARTIFACT_CHANGES.field("Mutation", "deleteArtifactPortfolio")
def delete_portfolio(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Delete a portfolio. Its versions stay where they were logged."""
    return _delete_collection(info.context, input["artifact_portfolio_id"])


def _delete_collection(context: GraphQLContext, id: str) -> dict[str, Any]:
    row = collection_for(context, id, Action.ARTIFACT_DELETE)
    by = changer(context, project_of(context, row))
    delete_unlinked(context, artifacts_of(context).collections.delete, row.id, context.now_ms(), by)
    record_change(context, project_of(context, row), "artifact.delete", row.name)
    return {"artifactCollection": collection_node(context, replace(row, versions=0), "DELETED")}


@ARTIFACT_CHANGES.field("Mutation", "createArtifactCollectionTagAssignments")
def add_collection_tags(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Give a collection tags."""
    return _change_tags(info.context, input, add=tag_names(input["tags"]))


@ARTIFACT_CHANGES.field("Mutation", "deleteArtifactCollectionTagAssignments")
def delete_collection_tags(_: None, info: Info, input: Input) -> dict[str, Any]:
    """Take tags from a collection."""
    return _change_tags(info.context, input, remove=tag_names(input["tags"]))


def _change_tags(
    context: GraphQLContext, input: Input, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> dict[str, Any]:
    project = project_named(context, input["project_name"], input["entity_name"])
    require(context, Action.ARTIFACT_UPDATE, project)
    row = collection_named(context, project, input["artifact_collection_name"])
    tags = [*(tag for tag in row.tags if tag not in remove), *add]
    changed = valid(artifacts_of(context).collections.change, row.id, context.now_ms(), tags=tags)
    return {"tags": [tag_node(tag) for tag in changed.tags], "success": True}
