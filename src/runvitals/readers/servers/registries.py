"""Registries of a server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from runvitals.model.artifact_names import checked_aliases
from runvitals.model.artifacts import ArtifactEntry
from runvitals.readers.servers import responses
from runvitals.readers.servers.artifact_contents import ArtifactContents
from runvitals.readers.servers.connection import ApiConnection, ServerError
from runvitals.sdk.artifacts.download import FileSelection, download
from runvitals.sdk.artifacts.local_paths import folder_of

_PAGE: Final = 200
_PREFIX: Final = "wandb-registry-"


class ServerRegistry:
    """A registry: collections into which versions are linked. `runvitals.Client.registry` makes one.

    Attributes:
        team, name: where it is.

    Example:
        >>> registry = runvitals.Client("https://runs.example.org").registry("vision/model")
        >>> registry.link("digits/weights:v3", "classifier", aliases=["staging"])
        >>> registry.download("classifier:production", "weights")
    """

    def __init__(self, connection: ApiConnection, team: str, name: str) -> None:
        self._connection = connection
        self.team = team
        self.name = name.removeprefix(_PREFIX)
        self._path = f"/teams/{_quote(team)}/registries/{_quote(self.name)}"

    def describe(self) -> dict[str, Any]:
        """Return its description, administrators, protected aliases and what you may do."""
        registry: dict[str, Any] = self._connection.get(self._path)
        return registry

    def collections(self, text: str = "") -> Iterator[dict[str, Any]]:
        """Iterate over the collections, by name.

        Args:
            text: only those with it in name, type or description.
        """
        return self._rows(f"{self._path}/collections", "collections", [("text", text or None)])

    def versions(self, collection: str, fields: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Iterate over the versions of a collection, the newest first.

        Args:
            fields: of the runs that made them, such as `summary.loss`.
        """
        return self._rows(
            f"{self._collection(collection)}/versions", "versions", [("field", name) for name in fields]
        )

    def version(self, name: str) -> dict[str, Any]:
        """Return a version by `collection[:alias]`; the alias may be a version: `v3`."""
        row: dict[str, Any] = self._connection.get(self._version(name))
        return row

    def link(self, artifact: str, collection: str, aliases: Sequence[str] = ()) -> dict[str, Any]:
        """Link a version of an artifact to a collection, which the first one makes; return the link.

        Args:
            artifact: `[team/]project/name[:alias]`.
        """
        name, _, version = artifact.partition(":")
        body = {"artifact": name, "version": version or "latest", "aliases": checked_aliases(aliases)}
        linked: dict[str, Any] = self._connection.send(
            "POST", f"{self._collection(collection)}/versions", body
        )
        return linked

    def unlink(self, name: str) -> None:
        """Remove the version `collection:alias`; it stays in the project that logged it."""
        self._connection.send("DELETE", self._version(name), None)

    def set_alias(self, name: str, alias: str) -> None:
        """Let an alias name the version `collection:v3`."""
        collection, _, version = name.partition(":")
        path = f"{self._collection(collection)}/aliases/{_quote(alias)}"
        self._connection.send("PUT", path, {"version": version or "latest"})

    def delete_alias(self, collection: str, alias: str) -> None:
        """Remove an alias."""
        self._connection.send("DELETE", f"{self._collection(collection)}/aliases/{_quote(alias)}", None)

    def request_alias(self, name: str, alias: str, text: str = "") -> dict[str, Any]:
        """Ask the administrators for a protected alias of the version `collection:v3`; return the request."""
        collection, _, version = name.partition(":")
        body = {"alias": alias, "version": version or "latest", "text": text}
        request: dict[str, Any] = self._connection.send(
            "POST", f"{self._collection(collection)}/requests", body
        )
        return request

    def requests(self, state: str | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over the requests, the newest first. `state`: open, approved, declined or withdrawn."""
        return self._rows(f"{self._path}/requests", "requests", [("state", state)])

    def decide(self, request: int, decision: str, text: str = "") -> dict[str, Any]:
        """Decide about a request: `approve`, `decline` or `withdraw`."""
        if decision not in ("approve", "decline", "withdraw"):
            raise ValueError(f"invalid decision {decision!r}; expected approve, decline or withdraw")
        decided: dict[str, Any] = self._connection.send(
            "POST", f"{self._path}/requests/{int(request)}/{decision}", {"text": text}
        )
        return decided

    def download(self, name: str, folder: str | None = None, include: Sequence[str] = ()) -> str:
        """Download the files of the version `collection[:alias]`; return the folder. See `Artifact.download`.

        Args:
            folder: default: `artifacts/COLLECTION:vN`.
            include: globs: only files whose path matches one.

        Raises:
            ValueError: a file would be outside the folder, or a glob matches none.
            ServerError: a file could not be fetched.
        """
        version = self.version(name)
        target = folder or folder_of(version["collection"], version["version"])
        path = self._version(f"{version['collection']}:v{version['version']}")
        download(_LinkedFiles(self._connection, path), target, FileSelection(tuple(include)))
        return os.path.abspath(target)

    def _collection(self, name: str) -> str:
        return f"{self._path}/collections/{_quote(name)}"

    def _version(self, name: str) -> str:
        collection, _, alias = name.partition(":")
        return f"{self._collection(collection)}/versions/{_quote(alias or 'latest')}"

    def _rows(self, path: str, plural: str, parameters: list[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        return _rows(self._connection, path, plural, parameters)


class _LinkedFiles:
    """The files of a version in a registry: a `FileSource`. `path`: of the version in the API."""

    def __init__(self, connection: ApiConnection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._contents = ArtifactContents(connection, path, lambda name: (f"{path}/files/{quote(name)}", []))

    def entries(self) -> list[ArtifactEntry]:
        """Return its files and references, by path."""
        rows = _rows(self._connection, f"{self._path}/files", "files", [])
        return [responses.to_dataclass(ArtifactEntry, row) for row in rows]

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path."""
        self._contents.copy(entry, path)

    def copy_small(self, paths: Mapping[ArtifactEntry, str]) -> set[ArtifactEntry]:
        """Write the contents of small files to their paths, as many as come together; return those."""
        return self._contents.copy_small(paths)

    def end(self) -> None:
        """Close the connections; the next request opens one."""
        self._contents.close()


def registry_names(connection: ApiConnection) -> Iterator[dict[str, Any]]:
    """Iterate over the registries that may be read."""
    return _rows(connection, "/registries", "registries", [])


def registry_of(connection: ApiConnection, name: str) -> ServerRegistry:
    """Return the registry `team/name`, or raise ValueError."""
    team, slash, registry = name.partition("/")
    if not (slash and team and registry) or "/" in registry:
        raise ValueError(f"invalid registry {name!r}; expected team/name, such as vision/model")
    return ServerRegistry(connection, team, registry)


def ensure_registry(connection: ApiConnection, team: str, name: str) -> None:
    """Create a registry of a team if it does not exist.

    Raises:
        ServerError: the server rejected the request or is unreachable.
    """
    try:
        connection.send("POST", f"/teams/{_quote(team)}/registries", {"name": name})
    except ServerError as error:
        if error.status != 409:
            raise


def _quote(name: str) -> str:
    return quote(name, safe="")


def _rows(
    connection: ApiConnection, path: str, plural: str, parameters: list[tuple[str, Any]]
) -> Iterator[dict[str, Any]]:
    after = None
    while True:
        page = connection.get(path, [*parameters, ("limit", _PAGE), ("after", after)])
        yield from page[plural]
        after = page["next"]
        if after is None:
            return
