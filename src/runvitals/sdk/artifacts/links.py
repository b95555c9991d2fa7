"""Links versions of artifacts to collections of projects and registries, on the server of the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from runvitals.model.artifacts import ArtifactAddress, UnknownArtifact
from runvitals.model.registry_names import MODELS, is_registry, project_of_registry, registry_name
from runvitals.sdk.artifacts.lookup import ArtifactScope, ArtifactSource, find

_TIMEOUT_S: Final = 30.0
_OF_LINK_MODEL: Final = "model-registry"
"""W&B's former place of models: the registry `model`."""


def link(scope: ArtifactScope, name: str, target: str, aliases: Sequence[str]) -> ArtifactSource:
    """Link a version of an artifact; return it as it is in the collection.

    The first link to a registry makes it. A short name means a registry if there is no such project.

    Args:
        name: `[entity/]project/name:vN`.
        target: `[[entity/]project/]collection`, where the project may be a registry.

    Raises:
        ValueError: an invalid target or alias, or the run is delivered to no server.
        UnknownArtifact: there is no such project or registry.
        ServerError: the server rejected the request or is unreachable.
    """
    from runvitals.base import stored_keys
    from runvitals.readers.servers.artifacts import link_version
    from runvitals.readers.servers.connection import ApiConnection
    from runvitals.readers.servers.registries import ensure_registry

    if scope.server is None:
        raise ValueError("versions are linked on a server: set one, with `server=` or RUNVITALS_SERVER")
    entity = name.split("/")[0] if name.count("/") > 1 else scope.entity
    collection = link_target(target, entity, scope.project)
    token = stored_keys.token(scope.server, os.environ)
    with closing(ApiConnection(scope.server, token, _TIMEOUT_S)) as connection:
        try:
            number = link_version(connection, name, collection, aliases)
        except UnknownArtifact as error:
            if collection.entity is None or not collection.project:
                raise
            if is_registry(collection.project):
                ensure_registry(connection, collection.entity, registry_name(collection.project))
            collection = replace(collection, project=project_of_registry(collection.project))
            try:
                number = link_version(connection, name, collection, aliases)
            except UnknownArtifact:
                raise error from None
    return find(scope, f"{str(collection).rpartition(':')[0]}:v{number}")


def link_target(target: str, entity: str | None, project: str) -> ArtifactAddress:
    """Return the collection of a target, with the entity and project of the run where it names none.

    Raises:
        ValueError: it is no target.

    Example:
        >>> link_target("wandb-registry-model/classifier", "vision", "digits").project
        'wandb-registry-model'
    """
    parts = target.partition(":")[0].split("/")
    if len(parts) > 3 or not all(parts):
        raise ValueError(f"invalid target {target[:200]!r}; expected [[entity/]project/]collection")
    *before, name = parts
    target_project = before[-1] if before else project
    if target_project == _OF_LINK_MODEL:
        target_project = project_of_registry(MODELS)
    return ArtifactAddress(before[0] if len(before) > 1 else entity, target_project, name)
