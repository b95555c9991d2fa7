"""Copies the contents of files, while a server may be receiving and removing some."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from runvitals.base.private_folders import make_private
from runvitals.store import private_files
from runvitals.store.files.folder_store import FolderFileStore

_PIECE_BYTES = 1 << 20


def copy_contents(folder: str, into: str, copied: Callable[[str, str, int], None]) -> None:
    """Copy the contents that are not in the target folder yet. They never change.

    Copy them before the metadata store, because a content that is removed later may still be in that copy;
    and again after it, because it may have newer ones.

    Args:
        copied: called with the name of each, the SHA-256 of what was written, and its size, before the
            content gets its name: what it raises ends the copy.

    Raises:
        OSError: one could not be read or written.
    """
    if not os.path.isdir(folder):
        return  # the server has received no files yet
    source = FolderFileStore(folder)
    for content in source.contents():
        target = os.path.join(into, content.sha256[:2], content.sha256)
        if os.path.exists(target):
            continue
        try:
            reading = source.open(content.sha256)
        except FileNotFoundError:
            continue  # it was removed meanwhile
        unfinished = f"{target}.unfinished"
        with reading:
            make_private(os.path.dirname(target))
            private_files.create(unfinished, exclusive=True)
            digest, size = hashlib.sha256(), 0
            with open(unfinished, "wb") as writing:
                while piece := reading.read(_PIECE_BYTES):
                    digest.update(piece)
                    size += writing.write(piece)
                writing.flush()
                os.fsync(writing.fileno())
        copied(content.sha256, digest.hexdigest(), size)
        os.replace(unfinished, target)
