"""Reads many small files for one response."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from runvitals.model import small_files
from runvitals.model.limits import PIECE_BYTES, SMALL_FILE_BYTES
from runvitals.server.files.received_files import SMALL_FILES_AT_ONCE, ReceivedFiles
from runvitals.server.files.storage.stored_files import StoredFile


def small_contents(files: ReceivedFiles, readable_files: Iterable[StoredFile]) -> dict[str, bytes]:
    """Return the contents of small files, by their SHA-256, as many as fit into one request.

    Left out are files in the bucket of a team, to which clients are led, and what is lost.

    Args:
        readable_files: files that the requester may read.
    """
    room = PIECE_BYTES
    chosen: dict[str, StoredFile] = {}
    for file in readable_files:
        size = small_files.HEAD_BYTES + file.bytes
        if file.sha256 in chosen or file.place or file.bytes > SMALL_FILE_BYTES or size > room:
            continue
        chosen[file.sha256] = file
        room -= size

    def read(file: StoredFile) -> bytes | None:
        opened = files.open_file(file)
        if opened is None:
            return None
        with opened.file as content:
            return content.read(file.bytes)

    if files.in_folder:
        contents = list(map(read, chosen.values()))
    else:
        with ThreadPoolExecutor(SMALL_FILES_AT_ONCE) as threads:
            contents = list(threads.map(read, chosen.values()))
    return {sha256: content for sha256, content in zip(chosen, contents, strict=True) if content is not None}
