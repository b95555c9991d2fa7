"""Large contents that several runs of a data folder have: they are on the disk once.

Each run has a file of its own in its folder, a hard link. `contents` in the data folder says by SHA-256 which
run has a content: a symbolic link, which leads nowhere when the run was removed, and takes no space.
"""

from __future__ import annotations

import contextlib
import os
import stat

from runvitals.base.private_folders import make_private
from runvitals.journal.paths import files_dir

SHARED_BYTES = 1024 * 1024
"""Smaller files are copied: links cost about as much."""
_RUNS = "runs"


class SharedContents:
    """The large contents of a data folder. Whatever fails, the caller keeps a copy of its own.

    Args:
        folder: that of a run. Runs that are not in a data folder share nothing.
    """

    def __init__(self, folder: str) -> None:
        runs = os.path.dirname(os.path.realpath(folder))
        self._runs = runs if os.path.basename(runs) == _RUNS else None
        self._contents = os.path.join(os.path.dirname(runs), "contents")

    def link(self, sha256: str, size: int, path: str) -> bool:
        """Make a path the file of another run with the same content; return whether there was one."""
        if self._runs is None or size < SHARED_BYTES:
            return False
        try:
            target = os.readlink(self._pointer(sha256))
            owner, _, rest = target.partition(os.sep)
            if rest != os.path.join(os.path.basename(files_dir("")), sha256) or owner in ("", ".", ".."):
                return False
            source = os.path.join(self._runs, target)
            status = os.lstat(source)
            if not stat.S_ISREG(status.st_mode) or status.st_size != size or status.st_uid != os.geteuid():
                return False
            os.link(source, path, follow_symlinks=False)
        except (OSError, NotImplementedError, AttributeError):  # removed meanwhile; no links here, or no more
            return False
        return True

    def note(self, sha256: str, size: int, path: str) -> None:
        """Note that a run has a content, for those that follow."""
        if self._runs is None or size < SHARED_BYTES:
            return
        pointer = self._pointer(sha256)
        new = f"{pointer}.{os.getpid()}-{os.urandom(4).hex()}"
        with contextlib.suppress(OSError, NotImplementedError):
            make_private(os.path.dirname(pointer))
            os.symlink(os.path.relpath(os.path.realpath(path), self._runs), new)
            try:
                os.replace(new, pointer)
            except OSError:
                os.unlink(new)

    def _pointer(self, sha256: str) -> str:
        return os.path.join(self._contents, sha256[:2], sha256)
