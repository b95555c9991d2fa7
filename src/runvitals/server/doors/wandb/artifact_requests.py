"""Finds the artifacts and collections of an operation, and refuses it: shared by all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from fastapi import HTTPException

from runvitals.server.access.actions import Action
from runvitals.server.artifacts.link_refusal import refusal
from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.artifacts.storage.rows import Collection, LinkedVersions, UnknownArtifact, Version
from runvitals.server.doors.wandb.artifact_nodes import artifacts_of, not_found, place_of, project_of, require
from runvitals.server.doors.wandb.context import GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.run_nodes import ProjectNode, find_project
from runvitals.server.registry.rights import changer_of
from runvitals.store.errors import LinkRefused, ProtectedAlias

Input = dict[str, Any]
"""The argument `input` of an operation, with names in snake case."""
_INT64: Final = 1 << 63
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")


def project_named(context: GraphQLContext, name: str, entity: str | None) -> ProjectNode:
    """Return a project that the requester may read."""
    project = find_project(context, name, entity)
    if project is None:
        raise not_found(f"project {f'{entity}/{name}'!r}" if entity else f"project {name!r}")
    return project


def version_for(context: GraphQLContext, id: str, action: Action) -> Version:
    """Return a version with which the requester may do something."""
    try:
        row = artifacts_of(context).versions.get(number_of("Artifact", id))
    except UnknownArtifact:
        raise not_found(f"artifact {id!r}") from None
    reads = action in (Action.ARTIFACT_READ, Action.ARTIFACT_DOWNLOAD)
    project = place_of(context, row, action) if reads else project_of(context, row.collection)
    require(context, action, project, row.id)
    return row


def draft_to_complete(context: GraphQLContext, number: int) -> Version:
    """Return a draft that the requester may complete."""
    row = version_for(context, node_id("Artifact", number), Action.ARTIFACT_CREATE)
    if row.state != "draft":
        raise InvalidArgument(f"the artifact is {row.state}: its files cannot be changed")
    return row


def collection_for(context: GraphQLContext, id: str, action: Action) -> Collection:
    """Return a collection with which the requester may do something."""
    what = f"collection of artifacts {id!r}"
    try:
        row = artifacts_of(context).collections.get(collection_number(id))
    except UnknownArtifact:
        raise not_found(what) from None
    require(context, action, project_of(context, row), what=what)
    return row


def collection_named(context: GraphQLContext, project: ProjectNode, name: str) -> Collection:
    """Return a collection of a project by its name. Raises HTTPException 404."""
    collection = artifacts_of(context).collections.named(project.number, name)
    if collection is None:
        raise not_found(f"collection of artifacts {name!r}")
    return collection


def tag_names(tags: Sequence[Input] | None) -> list[str]:
    """Return the names of tags in an input."""
    return [tag["tag_name"] for tag in tags or ()]


def checked_int64(name: str, value: Any) -> int | None:
    """Return a number that the schema declares as Int64: whatever JSON has is passed on to here.

    Raises:
        InvalidArgument: it is no such number.
    """
    if value is None:
        return None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or not -_INT64 <= value < _INT64:
        raise InvalidArgument(f"invalid {name} {str(value)[:60]!r}: expected an integer")
    return value


def valid(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function of the store, whose refusals the client shows.

    Raises:
        InvalidArgument, HTTPException: with the text of the refusal.
    """
    try:
        return function(*args, **kwargs)
    except UnknownArtifact as error:
        raise HTTPException(404, str(error)) from None
    except (ProtectedAlias, LinkRefused) as error:
        raise HTTPException(403, str(error)) from None
    except ValueError as error:
        raise InvalidArgument(str(error)) from None


def delete_unlinked(context: GraphQLContext, delete: Callable[..., Any], *args: Any) -> None:
    """Delete versions, which the store refuses while they are linked.

    Raises:
        InvalidArgument, HTTPException: with the text of the refusal.
    """
    try:
        valid(delete, *args)
    except LinkedVersions as error:
        refused = refusal(context.access, context.requester, "the artifact", error)
        raise InvalidArgument(str(refused.detail)) from None


def record_change(context: GraphQLContext, project: ProjectNode, action: str, name: str) -> None:
    """Add an event about an artifact to the audit log, where there is one."""
    if project.resource is not None and project.entity.number is not None:
        context.access.accounts.audit.record(
            context.now_ms(),
            context.requester.actor,
            action,
            entity=(project.entity.number, project.entity.name),
            project=project.name,
            before={"artifact": name},
        )


def changer(context: GraphQLContext, project: ProjectNode) -> Changer:
    """Return the requester as who changes collections of a project."""
    return changer_of(context.access, context.requester, project.number)


def collection_number(id: str) -> int:
    """Return the number in the id of a collection of either kind."""
    try:
        return number_of("ArtifactSequence", id)
    except InvalidArgument:
        return number_of("ArtifactPortfolio", id)
