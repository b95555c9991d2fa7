"""Space for files: what a full disk refuses may be sent again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from runvitals.server.files.disk_space import DiskSpace, FileNotStored
from runvitals.store.samples.interface import StoreError
from tests.server.ingest.test_full_disk import nothing_can_be_written


def test_a_disk_on_which_nothing_can_be_written_is_a_problem_until_it_passes(tmp_path: Path) -> None:
    space = DiskSpace(str(tmp_path), lambda: 0)
    assert space.problem() is None
    with nothing_can_be_written():
        with pytest.raises(FileNotStored, match="File too large") as refused, space.writing():
            (tmp_path / "file").write_bytes(b"content")
        assert (refused.value.status, refused.value.retry_after_s) == (503, 30)
        assert space.problem() == f"files cannot be written to {tmp_path}: File too large"
    assert space.problem() is None
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_must_leave_what_others_need(tmp_path: Path) -> None:
    space = DiskSpace(str(tmp_path), lambda: 1 << 60)
    with pytest.raises(FileNotStored, match="no space for the file"):
        space.check(1)
    assert space.problem() is None
    warning = space.warning()
    assert warning is not None
    assert warning.startswith("files are refused: ")


def test_other_errors_are_no_full_disk(tmp_path: Path) -> None:
    space = DiskSpace(str(tmp_path), lambda: 0)
    with pytest.raises(FileNotStored, match="Permission denied"), space.writing():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    assert (space.problem(), space.warning()) == (
        None,
        "the last file could not be stored: Permission denied",
    )
    with pytest.raises(StoreError, match="of the samples"), space.writing():
        raise StoreError("an error of the samples")
    with space.writing():
        pass
    assert space.warning() is None
