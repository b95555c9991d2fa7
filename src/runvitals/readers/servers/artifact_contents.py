"""Fetches the files of a version from a server, or from the bucket that it leads to, by several threads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from runvitals.base.http_client import HttpClient
from runvitals.base.replaced_files import replacing
from runvitals.model import small_files
from runvitals.model.artifacts import ArtifactEntry
from runvitals.readers.servers.connection import MAX_RESPONSE_BYTES, ApiConnection, ServerError

_PART_BYTES: Final = 8 * 1024 * 1024
_TIMEOUT_S: Final = 30.0
Address: TypeAlias = tuple[str, list[tuple[str, str]]]
"""A path in the API and its parameters."""


class _Connections:
    """The connections of a thread: to the server, and to the buckets that it leads to."""

    def __init__(self, server: ApiConnection) -> None:
        self.server = server
        self._buckets: dict[str, HttpClient] = {}

    def bucket_range(self, address: str, first: int, end: int) -> bytes:
        """Return some bytes at a signed address; the server's credentials are not sent there.

        Raises:
            OSError: it cannot be read.
        """
        parts = urlsplit(address)
        origin = f"{parts.scheme}://{parts.netloc}"
        http = self._buckets.get(origin)
        if http is None:
            http = self._buckets[origin] = HttpClient(origin, _TIMEOUT_S, MAX_RESPONSE_BYTES)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        response = http.request("GET", path, None, {"Range": f"bytes={first}-{end - 1}"})
        if response.status != 206 or len(response.body) != end - first:
            raise OSError(f"{origin} answered {response.status}")
        return response.body

    def close(self) -> None:
        """Close them; the next request opens one."""
        self.server.close()
        while self._buckets:
            self._buckets.popitem()[1].close()


class ArtifactContents:
    """The contents of a version. Thread-safe.

    Args:
        connection: to its server; each thread gets one of its own.
        path: of the version in the API.
        address: returns where the file with a path is.
    """

    def __init__(self, connection: ApiConnection, path: str, address: Callable[[str], Address]) -> None:
        self._path = path
        self._sends_small = True
        self._first = _Connections(connection)
        self._idle = [self._first]
        self._address = address
        self._reaches_bucket = True

    def copy_small(self, paths: Mapping[ArtifactEntry, str]) -> set[ArtifactEntry]:
        """Write the contents of small files to their paths with one request; return those that came.

        The others are copied one by one, which says what is wrong with them.

        Raises:
            ServerError: the server is unreachable.
        """
        if not self._sends_small:
            return set()
        try:
            with self._connections() as connections:
                body = connections.server.get_file(
                    f"{self._path}/contents", [("path", [entry.path for entry in paths])]
                )
            contents = dict(small_files.unpack(body))
        except ServerError as error:
            if error.status is None:
                raise
            self._sends_small = False  # an earlier version of the server
            return set()
        except ValueError:
            contents = {}
        # Files in the bucket of a team are fetched from there.
        self._sends_small = bool(contents)
        right = {
            sha256 for sha256, content in contents.items() if hashlib.sha256(content).hexdigest() == sha256
        }
        copied = {entry for entry in paths if entry.sha256 in right}
        for entry in copied:
            with replacing(paths[entry]) as draft, open(draft, "wb") as file:
                file.write(contents[entry.sha256 or ""])
        return copied

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path.

        Raises:
            ServerError: it could not be fetched, or is not what the manifest names.
        """
        digest = hashlib.sha256()
        with self._connections() as connections, replacing(path) as draft, open(draft, "wb") as file:
            for part in self._parts(connections, entry):
                digest.update(part)
                file.write(part)
            if digest.hexdigest() != entry.sha256:
                url = connections.server.url
                raise ServerError(f"{url} sent another content than that of {entry.path}")

    def _parts(self, connections: _Connections, entry: ArtifactEntry) -> Iterator[bytes]:
        """Yield a content in parts, from the bucket where the server leads there and it can be reached."""
        address, parameters = self._address(entry.path)
        size, first, signed = entry.bytes or 0, 0, None
        while first < size:
            end = min(size, first + _PART_BYTES)
            part: bytes | str | None = signed
            if signed is None:
                query = [*parameters, *([("redirect", "true")] if self._reaches_bucket else [])]
                part = connections.server.range_or_address(address, query, first, end)
            if isinstance(part, str):
                try:
                    part, signed = connections.bucket_range(part, first, end), part
                except OSError:
                    # The signed address is over, or the bucket is not reached from here.
                    self._reaches_bucket, signed = signed is not None, None
                    continue
            yield part or b""
            first = end

    def close(self) -> None:
        """Close the connections; the next request opens one."""
        while self._idle:
            self._idle.pop().close()
        self._idle.append(self._first)

    @contextmanager
    def _connections(self) -> Iterator[_Connections]:
        """Yield connections that no other thread uses meanwhile."""
        try:
            connections = self._idle.pop()
        except IndexError:
            connections = _Connections(self._first.server.another())
        try:
            yield connections
        finally:
            self._idle.append(connections)
