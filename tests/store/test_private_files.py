"""The files of a store are accessible only to their owner, regardless of the folder and the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from runvitals.base import stored_keys
from runvitals.monitoring.settings import trust
from runvitals.server.database.backup import copy_sqlite as copy_metadata
from runvitals.server.database.database import Database
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.backup import backup
from runvitals.terminal.leet.config import ProjectState


@pytest.fixture(autouse=True)
def empty_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """The permissions of the files in a folder."""
    return {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir() if path.is_file()}


def open_store(folder: Path) -> SqliteChunks:
    store = SqliteChunks(str(folder))
    times, values = np.array([1_000], np.int64), np.array([[1.5]])
    store.append([SampleBatch(1, 1, 0, (7,), times, values)])
    store.flush()
    return store


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_files_of_a_store_and_its_backup(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o755)
    with open_store(folder):
        Database(str(folder / "catalogue.db")).close()
        assert set(modes(folder).values()) == {"0o600"}, modes(folder)
        assert {"log.db", "log.db-wal", "log.db-shm", "store.lock", "catalogue.db"} <= set(modes(folder))
        backup(str(folder), str(tmp_path / "copy"))
        copy_metadata(str(folder / "catalogue.db"), str(tmp_path / "copy" / "catalogue.db"))
        assert set(modes(tmp_path / "copy").values()) == {"0o600"}
        assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        path.chmod(mode)  # as created by an earlier version
    with open_store(folder):
        Database(str(folder / "catalogue.db")).close()
        assert set(modes(folder).values()) == {"0o600"}, modes(folder)


def test_missing_folders_above_a_store_are_private_too(tmp_path: Path) -> None:
    """Who may write to one of them could put another store in its place."""
    with open_store(tmp_path / "a" / "b" / "store"):
        backup(str(tmp_path / "a" / "b" / "store"), str(tmp_path / "c" / "d" / "copy"))
    for name in ("a", "a/b", "a/b/store", "c", "c/d", "c/d/copy"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700, name


def test_files_of_the_user(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "new" / "config")}
    stored_keys.save("https://host", "abc", environ)
    trust.trust(str(tmp_path / "runvitals.toml"), b"", environ)
    ProjectState(str(tmp_path / "state" / "leet"), "digits").write({"columns": 2})
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
