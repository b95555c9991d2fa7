"""Fetches the files of a version from a server, by several threads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from runvitals.base.replaced_files import replacing
from runvitals.model.artifacts import ArtifactEntry
from runvitals.readers.servers.connection import ApiConnection, ServerError

_PART_BYTES: Final = 8 * 1024 * 1024
Address: TypeAlias = tuple[str, list[tuple[str, str]]]
"""A path in the API and its parameters."""


class ArtifactContents:
    """The contents of a version. Thread-safe.

    Args:
        connection: to its server; each thread gets one of its own.
        address: returns where the file with a path is.
    """

    def __init__(self, connection: ApiConnection, address: Callable[[str], Address]) -> None:
        self._first = connection
        self._idle = [connection]
        self._address = address

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path.

        Raises:
            ServerError: it could not be fetched, or is not what the manifest names.
        """
        digest, size, first = hashlib.sha256(), entry.bytes or 0, 0
        address, parameters = self._address(entry.path)
        with self._connection() as connection, replacing(path) as draft, open(draft, "wb") as file:
            while first < size:
                end = min(size, first + _PART_BYTES)
                part = connection.get_range(address, parameters, first, end)
                digest.update(part)
                file.write(part)
                first = end
            if digest.hexdigest() != entry.sha256:
                raise ServerError(f"{connection.url} sent another content than that of {entry.path}")

    def close_others(self) -> None:
        """Close the connections that several threads needed; the first one stays open."""
        while self._idle:
            connection = self._idle.pop()
            if connection is not self._first:
                connection.close()
        self._idle.append(self._first)

    @contextmanager
    def _connection(self) -> Iterator[ApiConnection]:
        """Yield a connection that no other thread uses meanwhile."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._first.another()
        try:
            yield connection
        finally:
            self._idle.append(connection)
