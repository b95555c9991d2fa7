"""Files of a store's folder that are no month files, and month files that are no files: others are served."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from runvitals.server.pairing.check import damage
from runvitals.store.samples.interface import ReadResult, SeriesSamples, StoreError
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite import repair as repairing
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.month_files import SET_ASIDE, MonthFiles
from tests.store.samples.conformance import ALL, DAY, batch

SMALL = StoreSettings(chunk_ticks=100, pack_ticks=20, compact_ticks=250)
FIRST, SECOND = "samples-2026-10.db", "samples-2026-11.db"


@pytest.fixture
def stored(folder: str) -> str:
    """A store with two months: 100 samples of run 1 in each, 10 of run 2 in the first."""
    with SqliteChunks(folder, SMALL) as store:
        store.append([batch(1, range(100), [1.0] * 100), batch(1, range(10), [2.0] * 10, run=2)])
        later = [40 * DAY + tick for tick in range(100)]
        store.append([batch(2, later, [3.0] * 100)])
        store.compact()
    assert {FIRST, SECOND} <= set(os.listdir(folder))
    return folder


def count(result: ReadResult[SeriesSamples], run: int) -> int:
    """How many samples of a run were read."""
    return sum(len(series.t) for series in result.series if series.run == run)


def read(store: SqliteChunks) -> ReadResult[SeriesSamples]:
    return store.read([1, 2], None, *ALL)


@pytest.mark.parametrize(
    "name", ["samples-2026-13.db", "samples-2026-00.db", "samples-0000-01.db", "samples-٢٠٢٦-١٠.db"]
)
def test_a_name_that_is_no_month_is_ignored(stored: str, name: str) -> None:
    shutil.copy(os.path.join(stored, FIRST), os.path.join(stored, name))
    assert len(MonthFiles(stored).existing()) == 2
    with SqliteChunks(stored, SMALL) as store:
        assert not read(store).damaged
        assert store.stats().warnings == ()
    assert list(check(stored)) == []


def _folder(path: str) -> None:
    os.mkdir(path)


def _pipe(path: str) -> None:
    os.mkfifo(path)


def _nowhere(path: str) -> None:
    os.symlink("/nonexistent/file", path)


@pytest.mark.parametrize("replace", [_folder, _pipe, _nowhere])
def test_what_is_no_file_is_reported_until_it_is_repaired(
    stored: str, replace: Callable[[str], None]
) -> None:
    path = os.path.join(stored, FIRST)
    os.unlink(path)
    replace(path)
    problems = [str(problem) for problem in check(stored)]
    assert f"{path}: {path} is not a file" in problems or f"{path}: is not a file" in problems
    assert all(SECOND not in problem for problem in problems)
    with SqliteChunks(stored, SMALL) as store:
        assert count(read(store), 1) == 100
        assert read(store).damaged
        (text,) = repairing.restore(store, lambda run: True)
        assert "it is no file, and was renamed to" in text
        assert store.stats().warnings == ()
        assert not read(store).damaged
    assert all(SET_ASIDE not in str(problem) for problem in check(stored))


def test_a_log_that_is_a_folder_is_created_anew(stored: str) -> None:
    path = os.path.join(stored, "log.db")
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(StoreError, match=r"log\.db is not a file"):
        SqliteChunks(stored, SMALL)
    texts: list[str] = []
    repairing.repair_log(stored, texts.append)
    assert "log.db is not a file; renamed it to" in texts[0].replace(f"{path}: ", "", 1)
    with SqliteChunks(stored, SMALL) as store:
        assert count(read(store), 1) == 200


def test_a_missing_log_is_named(stored: str) -> None:
    os.unlink(os.path.join(stored, "log.db"))
    with pytest.raises(StoreError, match=r"log\.db is missing: it contained the newest samples"):
        list(check(stored))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE data SET data = 'text'",
        "UPDATE times SET data = 'text'",
        "UPDATE pack SET body = 'text'",
        "UPDATE columns SET metrics = x'0102'",
        "UPDATE columns SET metrics = 'text'",
    ],
)
def test_values_of_another_type_cost_only_what_they_are_of(stored: str, damage: str) -> None:
    with closing(sqlite3.connect(os.path.join(stored, FIRST))) as connection:
        connection.execute(damage)
        connection.commit()
    with SqliteChunks(stored, SMALL) as store:
        result = read(store)
        assert count(result, 1) in (100, 200)
        assert result.damaged
        assert [latest.run for latest in store.latest([1])] == [1]
    assert list(check(stored))


@pytest.mark.parametrize("replace", [_folder, _pipe])
def test_a_database_that_is_no_file_is_damaged(tmp_path: Path, replace: Callable[[str], None]) -> None:
    path = str(tmp_path / "catalogue.db")
    replace(path)
    assert [str(problem) for problem in damage(path)] == [f"{path}: could not be read: {path} is not a file"]
