"""Files of runs on this machine."""

from __future__ import annotations

import os

from runvitals.journal import paths
from runvitals.model.media_types import HEAD_BYTES, media_type
from runvitals.server.library.run_library import OpenedContent


def open_content(folder: str, sha256: str) -> OpenedContent | None:
    """Open a file in the folder of a run by its SHA-256; None if it is not there.

    Raises:
        OSError: it cannot be read.
    """
    try:
        file = os.fdopen(paths.open_file(paths.content_path(folder, sha256)), "rb")
    except FileNotFoundError:
        return None
    head = file.read(HEAD_BYTES)
    file.seek(0)
    return OpenedContent(file, os.fstat(file.fileno()).st_size, media_type(head))
