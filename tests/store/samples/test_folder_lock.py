"""One process for a folder, whatever happens to the lock file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite.folder_lock import NAME, FolderLock


def test_a_folder_stays_locked_when_its_lock_file_is_deleted(tmp_path: Path) -> None:
    with closing(FolderLock(str(tmp_path))):
        (tmp_path / NAME).unlink()
        for _ in range(2):
            with pytest.raises(StoreError, match="is in use by another process: stop it first"):
                FolderLock(str(tmp_path))
    FolderLock(str(tmp_path)).close()
