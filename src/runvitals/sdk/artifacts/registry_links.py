"""Links artifacts of a run to registries of the server that it is delivered to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from runvitals.sdk.artifacts.lookup import ArtifactScope, ArtifactSource, find

_TIMEOUT_S: Final = 30.0


def find_source(scope: ArtifactScope, name: str) -> ArtifactSource:
    """Return the version with a name, as `lookup.find`; raise ValueError without a server."""
    _server(scope)
    return find(scope, name)


def link(scope: ArtifactScope, name: str, target: str, aliases: Sequence[str]) -> dict[str, Any]:
    """Link a version of an artifact.

    Args:
        name: `entity/project/name:vN`.
        target: `[team/]registry/collection`.

    Raises:
        ValueError: an invalid target or alias, or the run is delivered to no server.
        ServerError: the server rejected the request or is unreachable.
    """
    from runvitals.base import stored_keys
    from runvitals.readers.servers.connection import ApiConnection
    from runvitals.readers.servers.registries import link_target, registry_of

    server = _server(scope)
    registry, collection = link_target(target, name.split("/")[0] if name.count("/") > 1 else scope.entity)
    token = stored_keys.token(server, os.environ)
    with closing(ApiConnection(server, token, _TIMEOUT_S)) as connection:
        return registry_of(connection, registry).link(name, collection, aliases)


def _server(scope: ArtifactScope) -> str:
    if scope.server is None:
        raise ValueError("a registry is on a server: set one, with `server=` or RUNVITALS_SERVER")
    return scope.server
