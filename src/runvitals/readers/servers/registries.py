"""Registries of a server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from runvitals.model.artifact_names import checked_aliases
from runvitals.readers.servers.connection import ApiConnection

_PAGE: Final = 200
_PART_BYTES: Final = 8 * 1024 * 1024
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
        found: dict[str, Any] = self._connection.get(self._path)
        return found

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
        found: dict[str, Any] = self._connection.get(self._version(name))
        return found

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

    def download(self, name: str, folder: str | None = None) -> str:
        """Download the files of the version `collection[:alias]`; return the folder.

        Args:
            folder: default: `artifacts/COLLECTION:vN`.

        Raises:
            ValueError: a file would be outside the folder.
        """
        found = self.version(name)
        number = f"v{found['version']}"
        path = self._version(f"{found['collection']}:{number}")
        target = os.path.abspath(folder or os.path.join("artifacts", f"{found['collection']}:{number}"))
        for entry in self._rows(f"{path}/files", "files", []):
            if entry["reference"] is None:
                self._fetch(path, entry, target)
        return target

    def _fetch(self, path: str, entry: dict[str, Any], folder: str) -> None:
        parts = re.split(r"[/\\]", entry["path"])
        target = os.path.join(folder, *parts)
        if {"", ".", ".."} & set(parts) or not os.path.abspath(target).startswith(folder + os.sep):
            raise ValueError(f"the file {entry['path']!r} would be outside {folder}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        first, size = 0, entry["bytes"] or 0
        draft = f"{target}.{os.getpid()}.part"
        with open(draft, "wb") as file:
            while first < size:
                end = min(size, first + _PART_BYTES)
                url = f"{path}/files/{quote(entry['path'])}"
                file.write(self._connection.get_range(url, [], first, end))
                first = end
        os.replace(draft, target)

    def _collection(self, name: str) -> str:
        return f"{self._path}/collections/{_quote(name)}"

    def _version(self, name: str) -> str:
        collection, _, alias = name.partition(":")
        return f"{self._collection(collection)}/versions/{_quote(alias or 'latest')}"

    def _rows(self, path: str, plural: str, parameters: list[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
        after = None
        while True:
            page = self._connection.get(path, [*parameters, ("limit", _PAGE), ("after", after)])
            yield from page[plural]
            after = page["next"]
            if after is None:
                return


def registry_names(connection: ApiConnection) -> Iterator[dict[str, Any]]:
    """Iterate over the registries that may be read."""
    after = None
    while True:
        page = connection.get("/registries", [("limit", _PAGE), ("after", after)])
        yield from page["registries"]
        after = page["next"]
        if after is None:
            return


def registry_of(connection: ApiConnection, name: str) -> ServerRegistry:
    """Return the registry `team/name`, or raise ValueError."""
    team, slash, registry = name.partition("/")
    if not (slash and team and registry) or "/" in registry:
        raise ValueError(f"invalid registry {name!r}; expected team/name, such as vision/model")
    return ServerRegistry(connection, team, registry)


def link_target(path: str, entity: str | None) -> tuple[str, str]:
    """Return the registry `team/name` and the collection of a target `[team/]registry/collection`.

    Raises:
        ValueError: it is none, or names no team.
    """
    parts = path.partition(":")[0].split("/")
    if len(parts) == 2 and entity:
        parts = [entity, *parts]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"invalid target {path!r}; expected [team/]registry/collection")
    team, registry, collection = parts
    return f"{team}/{registry.removeprefix(_PREFIX)}", collection


def _quote(name: str) -> str:
    return quote(name, safe="")
