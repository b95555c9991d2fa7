"""Finds logged artifacts, on the server that runs are delivered to, or else on this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from runvitals.errors import CommError
from runvitals.model.artifacts import ArtifactAddress, ArtifactEntry, ArtifactVersion, UnknownArtifact

_POLL_S: Final = 0.25
_AWAY: Final = (None, 429, 502, 503, 504)
"""The status of a request that may succeed a moment later. None: there was no response."""


class ArtifactScope(NamedTuple):
    """The server or data folder of a run's artifacts, and the run's entity and project.

    Args:
        server: the address of the server; None: the journals in `folder`.
        folder: the data folder.
        entity, project: those of the run, for names that leave them out.
    """

    server: str | None
    folder: str | None
    entity: str | None
    project: str


class FileSource(Protocol):
    """The files of a version."""

    def entries(self) -> list[ArtifactEntry]:
        """Return its files and references, by path."""

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path. Several threads may call it.

        Raises:
            FileNotFoundError: the content is gone.
        """

    def copy_small(self, paths: Mapping[ArtifactEntry, str]) -> set[ArtifactEntry]:
        """Write the contents of small files to their paths, as many as come together; return those.

        Several threads may call it. The others can be copied one by one.
        """

    def end(self) -> None:
        """Close what reading needs; it can be read on."""


class ArtifactSource(FileSource, Protocol):
    """One version of an artifact."""

    @property
    def version(self) -> ArtifactVersion:
        """The version, as it was when it was last read."""

    def refresh(self) -> None:
        """Read the version again: its aliases may have changed.

        Raises:
            UnknownArtifact: it was deleted.
        """

    def run(self, run_id: str) -> Any:
        """Return a run that logged or used it."""


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


def find_content(scope: ArtifactScope, name: str, digest: str, timeout_s: float) -> ArtifactSource | None:
    """Return the version of an artifact with these files when it has arrived; None if it does not in time.

    Raises:
        ServerError: the server rejected the request, or was away until the end.
    """
    until_s = time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() >= until_s
        try:
            source = _content(scope, name, digest)
        except UnknownArtifact:
            source = None
        except CommError as error:
            if is_last or getattr(error, "status", None) not in _AWAY:
                raise
            source = None
        if is_last or source is not None:
            return source
        time.sleep(_POLL_S)


def _content(scope: ArtifactScope, name: str, digest: str) -> ArtifactSource | None:
    address = ArtifactAddress(scope.entity, scope.project, name)
    if scope.server is None:
        from runvitals.readers.journals.artifacts import LocalArtifacts

        return LocalArtifacts(scope.folder).with_digest(address, digest)
    from runvitals.readers.servers.artifacts import ServerArtifacts

    artifacts = ServerArtifacts.of(scope.server)
    source = artifacts.with_digest(address, digest)
    if source is None:  # it is asked for again in a moment, by another connection
        artifacts.close()
    return source
