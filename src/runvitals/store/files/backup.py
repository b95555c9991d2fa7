"""Copies the contents of files, while a server may be receiving and removing some."""

from __future__ import annotations

import os
import shutil

from runvitals.base.private_folders import make_private
from runvitals.store import private_files
from runvitals.store.files.folder_store import FolderFileStore

_PIECE_BYTES = 1 << 20


def copy_contents(folder: str, into: str) -> int:
    """Copy the contents that are not in the target folder yet; returns how many. They never change.

    Copy them before the metadata store, because a content that is removed later may still be in that copy;
    and again after it, because it may have newer ones.

    Raises:
        OSError: one could not be read or written.
    """
    if not os.path.isdir(folder):
        return 0  # the server has received no files yet
    source, copied = FolderFileStore(folder), 0
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
            with open(unfinished, "wb") as writing:
                shutil.copyfileobj(reading, writing, _PIECE_BYTES)
                writing.flush()
                os.fsync(writing.fileno())
        os.replace(unfinished, target)
        copied += 1
    return copied
