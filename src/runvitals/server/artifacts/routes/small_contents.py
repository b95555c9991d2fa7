"""Many small files of a version in one response: a request for each takes most of its time for itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import Response

from runvitals.model import small_files
from runvitals.server.access.control import AccessControl
from runvitals.server.artifacts.storage.entries import MAX_PATHS
from runvitals.server.files.small_contents import small_contents
from runvitals.server.http.responses import ErrorResponses
from runvitals.server.http.same_origin import INERT_POLICY
from runvitals.server.service_parameters import received_files

SMALL_CONTENTS: Final[ErrorResponses] = {
    200: {
        "content": {"application/octet-stream": {}},
        "description": "Of each content its SHA-256 (32 bytes), its size (4 bytes), and itself.",
    }
}
Paths = Annotated[
    list[str], Query(alias="path", description="Paths of files of the version.", max_length=MAX_PATHS)
]


def small_contents_response(
    request: Request, access: AccessControl, version_id: int, paths: Sequence[str]
) -> Response:
    """Return the contents of files of a version that are small: together at most 1 MiB.

    The client asks for each of the others by itself, and gets the reason there if it is lost.
    """
    entries = access.metadata_store.artifacts.entries.named(version_id, paths)
    contents = small_contents(received_files(request), [entry.stored for entry in entries if entry.stored])
    access.metadata_store.read_days.note_version(version_id, access.clock())
    headers: dict[str, Any] = {
        "content-security-policy": INERT_POLICY,
        "content-encoding": "identity",  # most small files do not get smaller, and compressing takes long
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(small_files.pack(contents.items()), 200, headers, "application/octet-stream")
