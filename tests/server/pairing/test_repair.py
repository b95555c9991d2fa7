"""`store check` finds lost and damaged data, `store repair` recovers what is readable."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from runvitals.model.filter import Filter
from runvitals.model.run_sort import RunSort
from runvitals.server.pairing import pairing
from runvitals.server.pairing.check import check_metadata_store
from runvitals.server.pairing.repair import repair
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.interface import SampleBatch, StoreError
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.month_files import MISSING
from tests.empty_metadata import new_metadata_store

NOW = 1_790_812_800_000
RUNS = 300
SMALL = StoreSettings(chunk_ticks=100, pack_ticks=20)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 300 runs, half of whose samples are sealed. Tests change copies of it."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    with (
        SqliteChunks(str(folder), SMALL) as samples,
        new_metadata_store(folder / "catalogue.db") as metadata_store,
    ):
        pairing.pair(samples, metadata_store)
        writers = metadata_store.writers.join(
            [WriterRegistration(f"otter-{n}", "monitor.node1.1", "digits") for n in range(RUNS)], NOW
        )
        metadata_store.sections.merge(
            [
                SectionUpdate(writer.run_id, "config", {"lr": n / 8, "about": "x" * 500}, NOW)
                for n, writer in enumerate(writers)
            ]
        )
        schema = metadata_store.metrics.schema(["cpu", "memory"])
        metadata_store.metrics.record_schemas([(writer.writer_id, schema.id) for writer in writers])
        t = NOW + 1000 * np.arange(40)
        for seq in range(2):
            samples.append(
                [
                    SampleBatch(
                        writer.lane_id,
                        writer.writer_id,
                        seq,
                        schema.metric_ids,
                        t + seq * 40_000,
                        np.full((40, 2), n + 0.5),
                    )
                    for n, writer in enumerate(writers)
                ]
            )
            if not seq:
                samples.flush()
    return folder


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "store"))


def problems(folder: Path) -> list[str]:
    return [
        str(problem)
        for problem in (*check(str(folder)), *check_metadata_store(str(folder), str(folder / "catalogue.db")))
    ]


def run_repair(folder: Path) -> list[str]:
    changes: list[str] = []
    repair(str(folder), str(folder / "catalogue.db"), changes.append)
    return changes


def runs(folder: Path) -> dict[str, int]:
    """The runs that a server shows, and the number of their samples."""
    with (
        SqliteChunks(str(folder)) as samples,
        new_metadata_store(folder / "catalogue.db") as metadata_store,
    ):
        pairing.pair(samples, metadata_store)
        counts: dict[str, int] = {}
        after: str | None = None
        while True:
            page = metadata_store.runs.page(Filter(), RunSort("started_ms"), NOW, 1000, after)
            for row in page.runs:
                lanes = [writer.lane_id for writer in metadata_store.writers.of_runs([row.id])[row.id]]
                counts[row.uid] = sum(
                    len(series.t) for series in samples.read(lanes, None, 0, 2 * NOW).series
                )
            after = page.next
            if after is None:
                return counts


def seal(folder: Path) -> Path:
    """Seal all samples of a store. Returns the month file."""
    with SqliteChunks(str(folder), SMALL) as samples:
        samples.flush()
    (path,) = folder.glob("samples-*.db")
    return path


def truncate(path: Path, kept: float = 0.5) -> None:
    with open(path, "r+b") as file:
        file.truncate(int(os.path.getsize(path) * kept) // 4096 * 4096)


def garble(path: Path) -> None:
    """Overwrite every fifth page behind the roots of all tables: without its root a table is lost."""
    with closing(sqlite3.connect(path)) as connection:
        (roots,) = connection.execute("SELECT max(rootpage) FROM sqlite_master").fetchone()
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for offset in range(roots * 4096, size, 5 * 4096):
            file.seek(offset)
            file.write(b"\xff" * 4096)


def test_an_intact_store_has_no_problems_and_is_not_changed_by_repair(store: Path) -> None:
    assert problems(store) == []
    before = runs(store)
    assert before == {f"otter-{n}": 160 for n in range(RUNS)}
    assert len(run_repair(store)) == 1
    assert runs(store) == before
    assert problems(store) == []


def test_a_truncated_metadata_store_is_recovered_as_far_as_readable(store: Path) -> None:
    truncate(store / "catalogue.db", kept=0.8)  # most of its first half is the empty tables
    assert any("catalogue.db: " in problem for problem in problems(store))
    run_repair(store)
    assert problems(store) == []
    counts = runs(store)
    assert sum(counts.values()) == RUNS * 160
    assert sum(name.startswith("otter") for name in counts) > RUNS // 4
    assert (store / "catalogue.db.damaged-1").exists()


def test_a_damaged_metadata_store_is_recovered_as_far_as_readable(store: Path) -> None:
    garble(store / "catalogue.db")
    assert problems(store)
    run_repair(store)
    assert problems(store) == []
    counts = runs(store)
    assert sum(counts.values()) == RUNS * 160
    assert sum(name.startswith("otter") for name in counts) > RUNS // 4


def test_a_pipe_in_place_of_the_metadata_store_is_not_waited_for(store: Path) -> None:
    (store / "catalogue.db").unlink()
    os.mkfifo(store / "catalogue.db")
    assert ["is not a file" in problem for problem in problems(store)] == [True]
    run_repair(store)
    assert problems(store) == []
    assert sum(runs(store).values()) == RUNS * 160


def test_without_metadata_store_runs_get_new_names_and_ids_are_not_reused(
    store: Path,
) -> None:
    (store / "catalogue.db").unlink()
    assert [problem for problem in problems(store) if "is missing" in problem]
    run_repair(store)
    assert problems(store) == []
    counts = runs(store)
    assert set(counts.values()) == {160}
    assert len(counts) == RUNS
    assert all(name.startswith("recovered-") for name in counts)
    with new_metadata_store(store / "catalogue.db") as metadata_store:
        (writer,) = metadata_store.writers.join([WriterRegistration("heron", "monitor.node1.1")], NOW)
        assert writer.lane_id > RUNS
        assert metadata_store.metrics.schema(["loss"]).metric_ids[0] > 2


def test_an_older_copy_of_the_metadata_store_is_paired(store: Path, tmp_path: Path) -> None:
    with (
        SqliteChunks(str(store)) as samples,
        new_metadata_store(store / "catalogue.db") as metadata_store,
    ):
        pairing.pair(samples, metadata_store)
        source = sqlite3.connect(store / "catalogue.db")
        source.execute("VACUUM INTO ?", (str(tmp_path / "before.db"),))
        source.close()
        (writer,) = metadata_store.writers.join([WriterRegistration("heron", "monitor.node1.1")], NOW)
        schema = metadata_store.metrics.schema(["loss"])
        samples.append(
            [
                SampleBatch(
                    writer.lane_id, writer.writer_id, 0, schema.metric_ids, np.array([NOW]), np.ones((1, 1))
                )
            ]
        )
    os.replace(tmp_path / "before.db", store / "catalogue.db")
    assert any("has not assigned" in problem for problem in problems(store))
    run_repair(store)
    assert problems(store) == []
    counts = runs(store)
    assert counts.pop(f"recovered-{writer.lane_id}") == 1
    assert counts == {f"otter-{n}": 160 for n in range(RUNS)}


def test_the_metadata_store_of_another_store_is_not_paired(store: Path, tmp_path: Path) -> None:
    with (
        SqliteChunks(str(tmp_path / "b")) as samples,
        new_metadata_store(tmp_path / "b.db") as metadata_store,
    ):
        pairing.pair(samples, metadata_store)
    with pytest.raises(StoreError, match="belongs to a different store"):
        repair(str(store), str(tmp_path / "b.db"), print)


@pytest.mark.parametrize("how", [truncate, garble])
def test_readable_samples_of_a_damaged_month_file_are_recovered(
    store: Path, how: Callable[[Path], None]
) -> None:
    with SqliteChunks(str(store)) as samples:
        samples.flush()
    how(store / "samples-2026-10.db")
    assert problems(store)
    changes = run_repair(store)
    assert any("samples; renamed it to" in line for line in changes)
    assert problems(store) == []
    total = sum(runs(store).values())
    assert RUNS * 160 * 0.2 < total < RUNS * 160


def test_samples_of_deleted_runs_are_not_recovered(store: Path) -> None:
    with (
        SqliteChunks(str(store)) as samples,
        new_metadata_store(store / "catalogue.db") as metadata_store,
    ):
        samples.flush()
        deleted = [row.id for row in metadata_store.runs.page(Filter(), RunSort("started_ms"), NOW, 50).runs]
        metadata_store.runs.delete(deleted, NOW)
        metadata_store.runs.purge(deleted, NOW)
    os.rename(store / "samples-2026-10.db", store / "samples-2026-10.db.damaged-1")
    run_repair(store)
    assert problems(store) == []
    assert len(runs(store)) == RUNS - 50


def test_a_lost_log_is_created_anew(store: Path) -> None:
    (store / "log.db").unlink()
    with pytest.raises(StoreError, match="repair"):
        runs(store)
    run_repair(store)
    assert problems(store) == []
    assert runs(store) == {f"otter-{n}": 80 for n in range(RUNS)}


def test_readable_rows_of_a_damaged_log_are_recovered(store: Path) -> None:
    garble(store / "log.db")
    run_repair(store)
    assert [problem for problem in problems(store) if "of the log" not in problem] == []
    assert min(runs(store).values()) >= 80
    with SqliteChunks(str(store)) as samples:
        samples.append([SampleBatch(1, 1, 99, (1,), np.array([NOW - 1]), np.ones((1, 1)))])
    with SqliteChunks(str(store)) as samples:  # its row number was not used before
        assert len(samples.read([1], [1], 0, NOW - 1).series) == 1


@pytest.mark.parametrize("magic", [b"", b"SQLite format 3\0"])
def test_a_log_of_random_bytes_is_set_aside(store: Path, magic: bytes) -> None:
    """It is not extended to the size in its invalid header."""
    head = magic + b"\xff" * 100
    (store / "log.db").write_bytes(head + np.random.default_rng(1).bytes(50_000))
    run_repair(store)
    assert problems(store) == []
    assert (store / "log.db.damaged-1").stat().st_size == len(head) + 50_000
    assert runs(store) == {f"otter-{n}": 80 for n in range(RUNS)}


def test_a_deleted_month_file_is_reported_until_restored_or_the_loss_is_accepted(store: Path) -> None:
    path = seal(store)
    path.rename(store / "elsewhere")
    assert f"{path}: {MISSING}" in problems(store)
    with SqliteChunks(str(store), SMALL) as samples:
        assert samples.stats().warnings == (f"{path} {MISSING}",)
        result = samples.read([1], None, 0, 2 * NOW)
        assert [damage.reason for damage in result.damaged] == [f"{path} {MISSING}"]
    (store / "elsewhere").rename(path)
    assert problems(store) == []
    path.unlink()
    assert f"{path} was deleted: its samples are lost unless it is restored from a backup" in run_repair(
        store
    )
    assert problems(store) == []
    with SqliteChunks(str(store), SMALL) as samples:
        assert samples.stats().warnings == ()


def test_a_month_file_deleted_while_in_use_is_created_anew_and_reported(store: Path) -> None:
    path = seal(store)
    t = NOW + 1_000_000 + 1000 * np.arange(40)
    with SqliteChunks(str(store), SMALL) as samples:
        samples.append([SampleBatch(1, 1, 100, (1,), t, np.ones((40, 1)))])
        samples.flush()
        path.unlink()
        assert samples.stats().warnings == (f"{path} {MISSING}",)
        samples.append([SampleBatch(1, 1, 101, (1,), t + 100_000, np.ones((40, 1)))])
        samples.flush()
        assert path.exists()
        assert samples.stats().warnings == (f"{path} {MISSING}",)
        result = samples.read([1], None, int(t[0]), 2 * NOW)
        assert [len(series.t) for series in result.series] == [40]
    with SqliteChunks(str(store), SMALL) as samples:
        assert samples.stats().warnings == (f"{path} {MISSING}",)
    assert f"{path}: {MISSING}" in problems(store)


def test_a_month_deleted_by_retention_is_not_reported(store: Path) -> None:
    seal(store)
    with SqliteChunks(str(store), SMALL) as samples:
        samples.drop_before(2 * NOW)
        assert samples.stats().warnings == ()
    assert not [problem for problem in check(str(store)) if MISSING in str(problem)]


def test_damaged_rows_of_the_log_are_reported_until_they_are_moved_away(store: Path) -> None:
    with closing(sqlite3.connect(store / "log.db")) as connection, connection:
        connection.execute("UPDATE log SET batches = x'00' || batches WHERE seq = (SELECT max(seq) FROM log)")
    for _ in range(2):  # by the server that finds it, and by those after it
        with SqliteChunks(str(store), SMALL) as samples:
            (warning,) = samples.stats().warnings
            assert warning.startswith(
                f"{store}/log.db: 1 damaged parts were set aside: `runvitals store check`"
            )
    assert f"{store}/log.db.damaged-parts-1" in "".join(run_repair(store))
    with SqliteChunks(str(store), SMALL) as samples:
        assert samples.stats().warnings == ()
    with closing(sqlite3.connect(store / "log.db.damaged-parts-1")) as connection:
        assert connection.execute("SELECT count(*) FROM damaged").fetchone() == (1,)
    assert problems(store) == []


def test_damaged_parts_of_a_month_are_reported_until_they_are_moved_away(store: Path) -> None:
    path = seal(store)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO damaged (run, t0, t1, ticks, data, reason) VALUES (1, ?, ?, 1, x'00', 'the checksum "
            "does not match')",
            (NOW, NOW),
        )
    with SqliteChunks(str(store), SMALL) as samples:
        assert [warning.partition(" damaged")[0] for warning in samples.stats().warnings] == [f"{path}: 1"]
    run_repair(store)
    with SqliteChunks(str(store), SMALL) as samples:
        assert samples.stats().warnings == ()
    assert problems(store) == []


@pytest.mark.parametrize("lane", [2**63 - 1, 2**62 + 1])
def test_a_run_with_an_id_that_no_server_assigns_gets_another_one(store: Path, lane: int) -> None:
    with SqliteChunks(str(store), SMALL) as samples:
        samples.append([SampleBatch(lane, lane, 0, (1,), np.array([NOW]), np.ones((1, 1)))])
    assert any(line.startswith(f"run {lane} has an id that no server assigns") for line in run_repair(store))
    assert problems(store) == []
    counts = runs(store)
    assert sum(counts.values()) == RUNS * 160 + 1
    with new_metadata_store(store / "catalogue.db") as metadata_store:
        (writer,) = metadata_store.writers.join([WriterRegistration("heron", "monitor.node1.1")], NOW)
        assert 0 < writer.lane_id < 1_000_000


@pytest.mark.parametrize("name", ["log.db-wal", "log.db-shm", "samples-2026-10.db-wal", "catalogue.db-shm"])
def test_a_folder_in_place_of_a_companion_file_is_named(store: Path, name: str) -> None:
    seal(store)
    path = store / name
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(StoreError, match=rf"{name} is not a file, so .* cannot be opened: move it away"):
        run_repair(store)
    path.rmdir()
    run_repair(store)
    assert problems(store) == []
