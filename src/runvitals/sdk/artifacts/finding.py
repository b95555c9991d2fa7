"""Finds artifacts that were logged: on the server that runs are delivered to, or else on this machine."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.model.artifacts import ArtifactAddress
from runvitals.sdk.artifacts.source import ArtifactSource


class ArtifactScope(NamedTuple):
    """The server or data folder of a run's artifacts, and the run's entity and project.

    Args:
        server: the address of the server; None: the journals in `folder`.
        folder: the data folder.
        entity, project: of the run; they complete names that leave them out.
    """

    server: str | None
    folder: str | None
    entity: str | None
    project: str


def find(scope: ArtifactScope, name: str) -> ArtifactSource:
    """Return the version with a name: `[[entity/]project/]name[:alias]`.

    Raises:
        ValueError: an invalid name.
        UnknownArtifact: there is no such version.
        ServerError: the server rejected the request or is unreachable.
    """
    named = ArtifactAddress.parsed(name)
    address = ArtifactAddress(
        named.entity or scope.entity, named.project or scope.project, named.name, named.alias
    )
    if scope.server is None:
        from runvitals.readers.journals.artifacts import LocalArtifacts

        return LocalArtifacts(scope.folder).find(address)
    from runvitals.readers.servers.artifacts import ServerArtifacts

    return ServerArtifacts.of(scope.server).find(address)


def find_content(scope: ArtifactScope, name: str, digest: str) -> ArtifactSource | None:
    """Return the version of an artifact with these files; None if it has not arrived yet.

    Raises:
        ServerError: the server rejected the request or is unreachable.
    """
    address = ArtifactAddress(scope.entity, scope.project, name)
    if scope.server is None:
        from runvitals.readers.journals.artifacts import LocalArtifacts

        return LocalArtifacts(scope.folder).with_digest(address, digest)
    from runvitals.readers.servers.artifacts import ServerArtifacts

    return ServerArtifacts.of(scope.server).with_digest(address, digest)
