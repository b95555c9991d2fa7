"""Samples are copied between engines, bit by bit, with what is known of their batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from runvitals.cli import main
from runvitals.store.samples.clickhouse import ClickHouseAddress
from runvitals.store.samples.interface import CommitAck, SampleBatch, StoreError
from runvitals.store.samples.migration import MigrationTotals, checksum, migrate
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.folder_lock import FolderLock
from runvitals.store.samples.sqlite.log import Pairing
from tests.store.samples.clickhouse.server import open_store
from tests.store.samples.comparison import assert_equal
from tests.store.samples.conformance import ALL, DAY, T0, batch
from tests.store.samples.model import Model

RUNS = range(1, 6)
RANGES = [ALL, (T0, T0 + 40 * DAY)]


def quiet(totals: MigrationTotals) -> None:
    pass


def batches() -> list[SampleBatch]:
    rng = np.random.default_rng(3)
    copied = []
    for run in RUNS:
        for seq in (0, 1, 2, 5):
            values = rng.choice([0.0, -0.0, 1.5, np.nan, np.inf, 5e-324], (50, 2))
            times = range(seq * 7 * DAY, seq * 7 * DAY + 50)
            copied.append(batch(seq, times, values, run=run, metrics=(1, 2 + run % 2)))
    return copied


def test_there_and_back(database: ClickHouseAddress, tmp_path: Path) -> None:
    model = Model()
    with (
        SqliteChunks(str(tmp_path / "embedded")) as embedded,
        open_store(database, tmp_path / "waiting") as clickhouse,
        SqliteChunks(str(tmp_path / "back")) as back,
    ):
        embedded.pair(Pairing("x", 3, "catalogue.db"))
        for store in (embedded, model):
            store.append(batches())
        assert migrate(embedded, clickhouse, quiet) == MigrationTotals(copied=5, samples=2000)
        assert migrate(clickhouse, back, quiet).copied == 5
        for copy in (clickhouse, back):
            assert_equal(copy, model, RUNS, RANGES)
            assert copy.pairing == Pairing("x", 3, "catalogue.db")
            assert [checksum(copy, run) for run in RUNS] == [checksum(embedded, run) for run in RUNS]
            assert copy.append([batch(5, [0], [[1.0, 2.0]], run=2, metrics=(1, 2))]) == CommitAck(0, 1)
            # What is written later wins over what was copied.
            assert copy.append([batch(3, [0], [[9.0]], run=2)]) == CommitAck(1, 0)
            assert copy.read([2], [1], T0, T0).series[0].values.tolist() == [9.0]


def test_a_second_copy_takes_what_has_changed(database: ClickHouseAddress, tmp_path: Path) -> None:
    with (
        SqliteChunks(str(tmp_path / "embedded")) as embedded,
        open_store(database, tmp_path / "waiting") as clickhouse,
    ):
        embedded.pair(Pairing("x", 1, "catalogue.db"))
        embedded.append(batches())

        def interrupt(totals: MigrationTotals) -> None:
            if totals.copied == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            migrate(embedded, clickhouse, interrupt)
        assert migrate(embedded, clickhouse, quiet) == MigrationTotals(2, 0, 3, 800)
        embedded.append([batch(9, [0], [[7.0]], run=4, metrics=(1,))])
        embedded.delete([5])
        assert migrate(embedded, clickhouse, quiet) == MigrationTotals(1, 0, 3, 400)
        assert clickhouse.runs() == [1, 2, 3, 4]
        assert clickhouse.read([4], [1], T0, T0).series[0].values.tolist() == [7.0]


def test_a_target_that_is_not_a_copy_is_left_alone(database: ClickHouseAddress, tmp_path: Path) -> None:
    with (
        SqliteChunks(str(tmp_path / "embedded")) as embedded,
        open_store(database, tmp_path / "waiting") as clickhouse,
    ):
        embedded.pair(Pairing("x", 1, "catalogue.db"))
        embedded.append(batches())
        clickhouse.append([batch(1, [0], [1.0])])
        with pytest.raises(StoreError, match="is not empty, and not a copy of"):
            migrate(embedded, clickhouse, quiet)
        clickhouse.pair(Pairing("x", 2, "catalogue.db"))
        with pytest.raises(StoreError, match="a server has used"):
            migrate(embedded, clickhouse, quiet)


def test_the_command_copies_while_a_server_writes(
    database: ClickHouseAddress, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "embedded"
    with SqliteChunks(str(folder)) as embedded:  # locked, as by a server
        embedded.pair(Pairing("x", 1, "catalogue.db"))
        embedded.append(batches())
        (folder / ".migrate-killed" / "copy").mkdir(parents=True)
        (folder / ".migrate-runs").mkdir()
        running = FolderLock(str(folder / ".migrate-runs"))
        assert main(["store", "migrate", str(folder), str(database)]) == 0
        assert [path.name for path in folder.glob(".migrate-*")] == [".migrate-runs"]
        running.close()
        assert "5 runs with 2,000 samples copied" in capsys.readouterr().out
        assert main(["store", "migrate", str(folder), str(database)]) == 0
        assert "0 runs with 0 samples copied" in capsys.readouterr().out
    assert [path.name for path in folder.glob(".migrate-*")] == []
    assert main(["store", "migrate", str(folder), str(folder)]) == 1
