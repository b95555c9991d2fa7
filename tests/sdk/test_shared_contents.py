"""A large content that several runs log is on the disk once, and stays when one of them is removed."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from runvitals.journal import paths
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.media.shared_contents import SHARED_BYTES

CONTENT = random.Random(1).randbytes(SHARED_BYTES)


def add(data: Path, run: str, content: bytes = CONTENT) -> os.stat_result:
    """Log a content; returns the status of the file of the run, which has this content."""
    folder = paths.run_dir(run, str(data))
    os.makedirs(folder, exist_ok=True)
    path = paths.content_path(folder, RunFiles(folder).add(content)["sha256"])
    assert Path(path).read_bytes() == content
    return os.stat(path)


def test_three_runs_take_the_space_of_one(tmp_path: Path) -> None:
    inodes = {add(tmp_path, run).st_ino for run in ("a", "b", "c")}
    assert len(inodes) == 1
    assert add(tmp_path, "c").st_nlink == 3
    shutil.rmtree(paths.run_dir("a", str(tmp_path)))
    assert add(tmp_path, "b").st_nlink == 2
    # The pointer led to the run that was removed: the next run has a copy, and those after it share that.
    assert add(tmp_path, "d").st_nlink == 1
    assert add(tmp_path, "e").st_nlink == 2


def test_small_contents_are_copied(tmp_path: Path) -> None:
    assert add(tmp_path, "a", CONTENT[:-1]).st_nlink == 1
    assert add(tmp_path, "b", CONTENT[:-1]).st_nlink == 1
    assert not (tmp_path / "contents").exists()


@pytest.mark.parametrize("how", ["other size", "leads out", "no link", "symbolic"])
def test_what_is_not_a_content_of_a_run_is_not_shared(tmp_path: Path, how: str) -> None:
    add(tmp_path, "a")
    (pointer,) = (tmp_path / "contents").glob("*/*")
    source = Path(paths.content_path(paths.run_dir("a", str(tmp_path)), pointer.name))
    if how == "other size":
        source.write_bytes(b"damaged")
    elif how == "symbolic":
        elsewhere = tmp_path / "elsewhere"
        source.rename(elsewhere)
        source.symlink_to(elsewhere)
    else:
        pointer.unlink()
        if how == "leads out":
            (tmp_path / "secret").write_bytes(CONTENT)
            pointer.symlink_to("../secret")
        else:
            pointer.write_bytes(CONTENT)
    assert add(tmp_path, "b").st_nlink == 1


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, "a")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "symlink", refuse)
    assert add(tmp_path, "b").st_nlink == 1
