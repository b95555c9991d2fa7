"""Artifacts on a server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from runvitals.base import stored_keys
from runvitals.model.artifact_names import checked_aliases
from runvitals.model.artifacts import ArtifactAddress, ArtifactEntry, ArtifactVersion, UnknownArtifact
from runvitals.readers.servers import responses
from runvitals.readers.servers.artifact_contents import ArtifactContents
from runvitals.readers.servers.connection import ApiConnection, ServerError
from runvitals.readers.servers.remote_run import RemoteRun

_PAGE: Final = 200
_TIMEOUT_S: Final = 30.0


class ServerArtifacts:
    """The artifacts of a server.

    Example:
        >>> artifacts = ServerArtifacts.of("https://runs.example.org")
        >>> artifacts.find(ArtifactAddress("vision", "digits", "mnist")).version.version
        3
    """

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    @classmethod
    def of(cls, url: str) -> ServerArtifacts:
        """Return the artifacts of a server, with the token for it; raise ValueError for an invalid URL."""
        return cls(ApiConnection(url, stored_keys.token(url, os.environ), _TIMEOUT_S))

    def find(self, address: ArtifactAddress) -> ServerArtifact:
        """Return the version that an address names.

        Raises:
            UnknownArtifact: there is none.
            ValueError: the address has no project.
            ServerError: the server rejected the request or is unreachable.
        """
        path = f"{_path(address)}/{quote(address.alias, safe='')}"
        version = responses.to_dataclass(ArtifactVersion, _get(self._connection, path, address))
        return ServerArtifact(self._connection, version)

    def with_digest(self, address: ArtifactAddress, digest: str) -> ServerArtifact | None:
        """Return the version of a name with these files; None if there is none."""
        try:
            page = _get(self._connection, _path(address), address, [("digest", digest)])
        except UnknownArtifact:
            return None
        rows = page["artifacts"]
        return (
            ServerArtifact(self._connection, responses.to_dataclass(ArtifactVersion, rows[0]))
            if rows
            else None
        )

    def close(self) -> None:
        """Close the connection to the server."""
        self._connection.close()

    def names(self, project: str, entity: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield name, type and number of versions of a project's artifacts, or raise UnknownArtifact."""
        address = ArtifactAddress(entity, project, "")
        yield from _rows(self._connection, _project_path(address), address, "collections")

    def versions(self, address: ArtifactAddress) -> Iterator[ArtifactVersion]:
        """Yield the versions of a name, the newest first, or raise UnknownArtifact."""
        for row in _rows(self._connection, _path(address), address, "artifacts"):
            yield responses.to_dataclass(ArtifactVersion, row)

    def sources(self, address: ArtifactAddress) -> Iterator[ServerArtifact]:
        """Yield the same, each as what an `Artifact` reads from."""
        for version in self.versions(address):
            yield ServerArtifact(self._connection, version)

    def time_to_live_s(self, address: ArtifactAddress) -> int | None:
        """Return after how long versions are deleted, in seconds; None: they are kept.

        Raises:
            UnknownArtifact: there is no artifact of this name.
            ServerError: the server rejected the request or is unreachable.
        """
        ttl_s: int | None = _get(self._connection, _path(address), address, [("limit", 1)]).get("ttl_s")
        return ttl_s

    def set_time_to_live(self, address: ArtifactAddress, seconds: int | None) -> int:
        """Let versions be deleted some time after they were logged; None: they are kept.

        Linked versions stay, and those that have a time to live of their own.

        Returns:
            How many of the versions that are there are deleted because of it, now or later.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        changed = self._connection.send("PATCH", _path(address), {"ttl_s": seconds})
        return int(changed["expiring_versions"])

    def dependents(self, address: ArtifactAddress, alias: str | None) -> dict[str, Any]:
        """Return what breaks if a version is deleted, or all of a name without an alias.

        Raises:
            UnknownArtifact: there is none.
            ServerError: the server rejected the request or is unreachable.
        """
        path = f"{_project_path(address).removesuffix('artifacts')}artifact-dependents"
        answer: dict[str, Any] = _get(
            self._connection, path, address, [("name", address.name), ("alias", alias)]
        )
        return answer

    def delete(self, address: ArtifactAddress, alias: str | None) -> None:
        """Delete a version with its aliases, or all of a name without an alias.

        Raises:
            ServerError: the server rejected the request, as it does for what is linked, or is unreachable.
        """
        path = _path(address)
        if alias is not None:
            path = f"{path}/{quote(alias, safe='')}?with_aliases=true"
        self._connection.send("DELETE", path, None)


class ServerArtifact:
    """A version of an artifact on a server: an `ArtifactSource`."""

    def __init__(self, connection: ApiConnection, version: ArtifactVersion) -> None:
        self._connection = connection
        self.version = version
        own = self._own_path  # not in the function: that would be a circle with its socket
        self._contents = ArtifactContents(connection, own, lambda path: (f"{own}/content", [("path", path)]))

    @property
    def _address(self) -> ArtifactAddress:
        version = self.version
        return ArtifactAddress(version.entity, version.project, version.name, f"v{version.version}")

    @property
    def _own_path(self) -> str:
        return f"{_path(self._address)}/{quote(self._address.alias, safe='')}"

    def refresh(self) -> None:
        """Read the version and its aliases again; raise UnknownArtifact if it was deleted."""
        row = _get(self._connection, self._own_path, self._address)
        self.version = responses.to_dataclass(ArtifactVersion, row)

    def entries(self) -> list[ArtifactEntry]:
        """Return its files and references, by path."""
        rows = _rows(self._connection, f"{self._own_path}/files", self._address, "files")
        return [responses.to_dataclass(ArtifactEntry, row) for row in rows]

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path.

        Raises:
            ServerError: it could not be fetched, or is not what the manifest names.
        """
        self._contents.copy(entry, path)

    def copy_small(self, paths: Mapping[ArtifactEntry, str]) -> set[ArtifactEntry]:
        """Write the contents of small files to their paths, as many as come together; return those."""
        return self._contents.copy_small(paths)

    def end(self) -> None:
        """Close the connections; the next request opens one."""
        self._contents.close()

    def run(self, run_id: str) -> RemoteRun:
        """Return a run that logged or used it."""
        row = self._connection.get_of_run(run_id)
        return RemoteRun(self._connection, row, responses.run(row))


def link_version(
    connection: ApiConnection, artifact: str, address: ArtifactAddress, aliases: Sequence[str]
) -> int:
    """Link the version `[entity/]project/name:vN` to a collection of a project; return its number there.

    Raises:
        ValueError: an invalid alias.
        UnknownArtifact: there is no such project.
        ServerError: the server rejected the request or is unreachable.
    """
    name, _, version = artifact.partition(":")
    body = {"artifact": name, "version": version, "aliases": checked_aliases(aliases)}
    try:
        linked: dict[str, int] = connection.send("POST", _path(address), body)
    except ServerError as error:
        if error.status == 404:
            raise UnknownArtifact(
                f"{artifact} cannot be linked to {address} on {connection.url}: {error}"
            ) from None
        raise
    return linked["version"]


def _project_path(address: ArtifactAddress) -> str:
    if not address.project:
        raise ValueError(f"the artifact {address} has no project; expected [entity/]project/name[:alias]")
    project = f"/projects/{quote(address.project, safe='')}/artifacts"
    return f"/entities/{quote(address.entity, safe='')}{project}" if address.entity else project


def _path(address: ArtifactAddress) -> str:
    return f"{_project_path(address)}/{quote(address.name, safe='')}"


def _get(
    connection: ApiConnection,
    path: str,
    address: ArtifactAddress,
    parameters: list[tuple[str, Any]] | None = None,
) -> Any:
    try:
        return connection.get(path, parameters or [])
    except ServerError as error:
        if error.status == 404:
            raise UnknownArtifact(f"there is no artifact {address} on {connection.url}: {error}") from None
        raise


def _rows(
    connection: ApiConnection, path: str, address: ArtifactAddress, field: str
) -> Iterator[dict[str, Any]]:
    after = None
    while True:
        page = _get(connection, path, address, [("limit", _PAGE), ("after", after)])
        yield from page[field]
        after = page["next"]
        if after is None:
            return
