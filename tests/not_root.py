"""A folder for tests of permissions, in which they are not root: root may write everywhere."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def folder_without_root() -> Iterator[Path]:
    """A folder of its own, as a user who is not root."""
    folder = Path(tempfile.mkdtemp(prefix="not-root-"))
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, _NOBODY, -1)
            os.seteuid(_NOBODY)
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(folder)
