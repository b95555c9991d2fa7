"""Objects of cold storage that are missing or damaged: `check` names them, and `repair` says what is lost."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from runvitals.cli import main
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing import pairing
from runvitals.server.pairing.repair import repair
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.samples.cold.reading import ColdLost
from runvitals.store.samples.cold.storage import CACHE_FOLDER, ColdSettings, ColdStorage
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.check import check
from tests.store.samples.conformance import ALL, DAY, T0, batch, samples_of
from tests.store.samples.test_cold_storage import EXPECTED, SMALL, TICKS, VALUES

RUNS = 4
OBJECT_BYTES = 14_000
"""About two runs in an object."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of a store whose samples are all in the objects of the folder `bucket`."""
    folder = tmp_path / "store"
    (tmp_path / "bucket").mkdir()
    settings = ColdSettings(str(tmp_path / "bucket"), after_ms=30 * DAY, object_bytes=OBJECT_BYTES)
    with (
        SqliteChunks(str(folder), SMALL, lambda: T0 + 90 * DAY, settings) as store,
        open_metadata_store(str(folder / "catalogue.db")) as metadata_store,
    ):
        pairing.pair(store, metadata_store)
        writers = metadata_store.writers.join(
            [WriterRegistration(f"otter-{n}", "monitor.node1.1", "digits") for n in range(RUNS)], T0
        )
        metadata_store.metrics.schema(["cpu", "memory"])
        store.append([batch(1, TICKS, VALUES, run=writer.lane_id) for writer in writers])
        store.compact()
        store.move_to_cold_storage()
        for writer in writers:  # they are in the cache
            store.read([writer.lane_id], None, *ALL)
    assert len(objects(folder)) > 1
    return folder


def objects(store: Path) -> list[Path]:
    return sorted(path for path in (store.parent / "bucket").rglob("*") if path.is_file())


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def blank(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def take_content_of_another(path: Path) -> None:
    (other, *_) = [other for other in path.parent.parent.rglob("*") if other.is_file() and other != path]
    path.write_bytes(other.read_bytes())


IN_SIZE = [remove, empty, truncate, extend]
IN_CONTENT = [flip, blank, take_content_of_another]


def checked(store: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    code = main(["store", "check", "--store", str(store), *options])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("damage", IN_SIZE + IN_CONTENT)
def test_check_names_the_object_and_counts_what_is_lost(
    store: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(store, capsys, "--read-cold") == (0, f"{store}: no problems found\n")
    before = sorted(path for path in store.rglob("*"))
    path, *_ = objects(store)
    damage(path)
    code, printed = checked(store, capsys, "--read-cold")
    (problem, count) = printed.splitlines()
    assert (code, count) == (1, "1 problem")
    values = int(
        re.sub(",", "", re.findall(r"samples-2026-10.db: ([\d,]+) values of [12] runs are lost", problem)[0])
    )
    assert 1000 <= values < 4000
    assert re.search(rf" 1 of \d objects .*, such as {path.name}$", problem), problem
    if damage in IN_SIZE:
        assert checked(store, capsys) == (1, printed)
    assert sorted(path for path in store.rglob("*")) == before


def test_a_check_that_did_not_read_cold_storage_says_so(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    no_problems = f"{store}: no problems found; 0.0 MB in cold storage were not read: use --read-cold\n"
    assert checked(store, capsys) == (0, no_problems)


@pytest.mark.parametrize("damage", IN_SIZE + IN_CONTENT)
def test_repair_says_which_values_are_lost(store: Path, damage: Callable[[Path], None]) -> None:
    path, *_ = objects(store)
    content = path.read_bytes()
    damage(path)
    lines: list[str] = []
    repair(str(store), str(store / "catalogue.db"), lines.append)
    (named,) = [line for line in lines if path.name in line]
    assert named.endswith(f"such as {path.name}: put them back, or these values are lost:")
    of_runs = [
        re.search(r"([\d,]+) values of 1 metric of run digits/(otter-\d), from (\S+) to (\S+)$", line)
        for line in lines[lines.index(named) + 1 :]
    ]
    assert 1 <= len(of_runs) <= 2
    for entry in of_runs:
        assert entry is not None, lines
        assert "2026-10-0" in entry[3]
    values = sum(int(entry[1].replace(",", "")) for entry in of_runs if entry)
    with SqliteChunks(str(store), SMALL) as samples:
        for name in os.listdir(store / CACHE_FOLDER):
            os.unlink(store / CACHE_FOLDER / name)
        readable = sum(len(each.t) for each in samples.read(list(range(1, RUNS + 1)), None, *ALL).series)
    assert readable == RUNS * len(VALUES) - values
    # Nothing was dropped: when the object is back, so are its values.
    path.write_bytes(content)
    with SqliteChunks(str(store), SMALL) as samples:
        assert samples_of(samples.read([1], [1], *ALL)) == {(1, 1): EXPECTED}
    lines.clear()
    repair(str(store), str(store / "catalogue.db"), lines.append)
    assert not [line for line in lines if "lost:" in line]


@pytest.mark.parametrize("damage", [remove, empty, flip])
@pytest.mark.parametrize("month", ["deleted", "damaged"])
def test_repair_of_a_month_recovers_the_values_of_the_other_objects(
    store: Path, damage: Callable[[Path], None], month: str
) -> None:
    for name in os.listdir(store / CACHE_FOLDER):
        os.unlink(store / CACHE_FOLDER / name)
    damage(objects(store)[0])
    path = store / "samples-2026-10.db"
    if month == "deleted":
        path.unlink()
    else:
        path.rename(f"{path}.damaged-1")
    lines: list[str] = []
    repair(str(store), str(store / "catalogue.db"), lines.append)
    if (month, damage) != ("deleted", remove):  # then nobody knows that it was there
        assert [line for line in lines if re.search(r"lost|is missing", line)], lines
    with SqliteChunks(str(store), SMALL) as samples:
        readable = sum(len(each.t) for each in samples.read(list(range(1, RUNS + 1)), None, *ALL).series)
    assert 0 < readable < RUNS * len(VALUES)
    assert list(check(str(store), reads_cold=True)) == []


def test_the_other_objects_stay_readable_beside_a_damaged_one(store: Path) -> None:
    for name in os.listdir(store / CACHE_FOLDER):
        os.unlink(store / CACHE_FOLDER / name)
    flip(objects(store)[0])
    with SqliteChunks(str(store), SMALL) as samples:
        for _ in range(2):
            counts = [
                sum(len(each.t) for each in samples.read([run], None, *ALL).series)
                for run in range(1, RUNS + 1)
            ]
            assert sum(count == len(VALUES) for count in counts) >= RUNS - 2, counts
        assert samples.read([1, 2, 3, 4], None, *ALL).damaged


def test_repair_says_that_it_does_not_know_where_old_samples_are(store: Path) -> None:
    (store / "log.db").unlink()
    lines: list[str] = []
    repair(str(store), str(store / "catalogue.db"), lines.append)
    assert lines[-1].endswith("objects have old samples, nobody knows where: specify --cold-storage")
    repair(str(store), str(store / "catalogue.db"), lines.append, ColdSettings(str(store.parent / "bucket")))
    assert list(check(str(store), reads_cold=True)) == []


class CountingStore(FolderFileStore):
    """Counts how often objects are opened."""

    opened = 0

    def open(self, sha256: str) -> BinaryIO:
        self.opened += 1
        return super().open(sha256)


@pytest.mark.parametrize("damage", [remove, flip])
def test_a_lost_object_is_not_read_again_for_each_of_its_chunks(
    store: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path, other, *_ = objects(store)
    content = path.read_bytes()
    damage(path)
    bucket, now_s = CountingStore(str(store.parent / "bucket" / "samples")), 0.0
    storage = ColdStorage(
        ColdSettings(str(store.parent / "bucket")), str(tmp_path / "x"), lambda _: bucket, lambda: now_s
    )
    for _ in range(20):
        with pytest.raises(ColdLost, match=path.name):
            storage.fetch(path.name)
    assert bucket.opened == 1
    storage.fetch(other.name)
    path.write_bytes(content)
    now_s += 100.0
    storage.fetch(path.name)
    assert bucket.opened == 3
