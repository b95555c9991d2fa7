"""Reads media and saved files of a run on a server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from runvitals.base.replaced_files import replacing
from runvitals.model.logged_media import LoggedMedia, MediaKey, SavedFile
from runvitals.model.media import is_sha256
from runvitals.readers.servers import responses
from runvitals.readers.servers.connection import ApiConnection, ServerError

_PAGE = 200
_PART_BYTES = 8 * 1024 * 1024

NamedContent = SavedFile | Mapping[str, Any]
"""A name of a content: a saved file, or an item of `LoggedMedia.items`."""


class RemoteFiles:
    """The media and saved files of one run. Contents are fetched in parts of 8 MiB, and checked."""

    def __init__(self, connection: ApiConnection, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id

    def media_keys(self) -> list[MediaKey]:
        """See `RemoteRun.media_keys`."""
        return [responses.to_dataclass(MediaKey, row) for row in self._pages("/media", "media", [])]

    def media(self, key: str, first_step: float | None, last_step: float | None) -> Iterator[LoggedMedia]:
        """See `RemoteRun.media`."""
        parameters = [("key", key), ("first_step", first_step), ("last_step", last_step)]
        for row in self._pages("/media/records", "records", parameters):
            yield responses.to_dataclass(LoggedMedia, row)

    def list_saved(self) -> list[SavedFile]:
        """See `RemoteRun.files`."""
        return [responses.to_dataclass(SavedFile, row) for row in self._pages("/files", "files", [])]

    def _pages(self, path: str, field: str, query: list[tuple[str, Any]]) -> Iterator[Mapping[str, Any]]:
        after = None
        while True:
            parameters = [*query, ("limit", _PAGE), ("after", after)]
            page = self._connection.get_of_run(self._run_id, path, parameters)
            yield from page[field]
            after = page["next"]
            if after is None:
                return

    def parts(self, content: NamedContent) -> Iterator[bytes]:
        """Yield the content, part by part.

        Raises:
            ValueError: it names no file.
            ServerError: it could not be fetched, or is not what the record names.
        """
        sha256, size = _identify(content)
        digest = hashlib.sha256()
        first = 0
        while first < size:
            end = min(size, first + _PART_BYTES)
            part = self._connection.get_range_of_run(self._run_id, f"/files/{sha256}", first, end)
            digest.update(part)
            first += len(part)
            yield part
        if digest.hexdigest() != sha256:
            raise ServerError(f"{self._connection.url} sent another content than that of {sha256}")

    def download(self, content: NamedContent, path: str) -> None:
        """See `RemoteRun.download`."""
        with replacing(path) as draft, open(draft, "wb") as file:
            for part in self.parts(content):
                file.write(part)


def _identify(content: NamedContent) -> tuple[str, int]:
    if isinstance(content, SavedFile):
        return content.sha256, content.bytes
    sha256, size = content.get("sha256"), content.get("bytes")
    if not isinstance(sha256, str) or not is_sha256(sha256) or not isinstance(size, int):
        why = f": {content['error']}" if content.get("error") else "; its value is in the item itself"
        raise ValueError(f"the item has no file{why}")
    return sha256, size
