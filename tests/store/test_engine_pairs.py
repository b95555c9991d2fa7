"""Every pair of engines is checked, repaired, and started with metadata from before."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.store.samples.interface import StoreError
from tests.server.database.conftest import postgresql
from tests.store.engine_pairs import Pair, record, runs
from tests.store.samples.clickhouse.server import ClickHouseServer, installed

__all__ = ["postgresql"]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouseServer]:
    if not installed("debian"):
        pytest.skip("clickhouse-server is not installed")
    server = ClickHouseServer(tmp_path_factory.mktemp("clickhouse") / "server")
    yield server
    server.stop()


@pytest.fixture(params=["folder", "clickhouse"])
def samples(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "data" / "store")
    server = request.getfixturevalue("clickhouse")
    return str(server.new_database(f"pairs_{os.getpid()}_{next(_numbers)}"))


@pytest.fixture(params=["sqlite", "postgresql"])
def pair(samples: str, request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    data = tmp_path / "data"
    if request.param == "sqlite":
        return Pair(samples, str(data / "store" / "catalogue.db"), data)
    server = request.getfixturevalue("postgresql")
    return Pair(samples, server.make(f"pairs_{os.getpid()}_{next(_numbers)}"), data, server)


def test_a_healthy_pair_has_no_problems_and_is_not_changed_by_a_repair(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    record(pair, "otter", "cpu", "loss")
    for _ in range(2):
        assert main(["store", "check", *pair.options]) == 0
        assert main(["store", "repair", *pair.options]) == 0
        assert runs(pair) == {"otter": {"cpu": 10, "loss": 10}}
    assert "are paired" in capsys.readouterr().out


def test_metadata_from_before_the_last_start_is_used_or_repaired(
    pair: Pair, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    record(pair, "otter", "cpu")
    before = pair.copy_metadata()
    lost = record(pair, "badger", "loss")
    record(pair, "otter", "cpu", "accuracy", seq=1)
    pair.restore_metadata(before)
    assert main(["store", "check", *pair.options]) == 1
    assert f"unknown run: the sample store has samples of run id {lost}" in capsys.readouterr().out
    if pair.postgresql is None:
        with pytest.raises(StoreError, match=r"is older than the store in .*`runvitals store repair`"):
            runs(pair)
    else:  # it was restored from a dump, and there is nothing newer
        assert runs(pair) == {"otter": {"cpu": 20}}
        assert "What was recorded after that copy is lost" in caplog.text
        caplog.clear()
        assert record(pair, "heron", "loss") > lost
        assert runs(pair) == {"otter": {"cpu": 20}, "heron": {"loss": 10}}
        assert caplog.text == ""
    assert main(["store", "repair", *pair.options]) == 0
    assert main(["store", "check", *pair.options]) == 0
    shown = runs(pair)
    shown.pop("heron", None)
    names = {key for counts in shown.values() for key in counts}
    assert names - {"cpu"} == {key for key in names if key.startswith("recovered.metric_")}
    assert sorted(shown["otter"].values()) == [10, 20]
    assert list(shown[f"recovered-{lost}"].values()) == [10]
    assert record(pair, "marten", "loss") > lost
    assert runs(pair)["marten"] == {"loss": 10}


def test_metadata_that_was_lost_is_made_anew_from_the_samples(pair: Pair) -> None:
    lane = record(pair, "otter", "cpu", "loss")
    if pair.postgresql is None:
        os.unlink(pair.metadata)
    else:
        pair.metadata = pair.postgresql.make(f"pairs_{os.getpid()}_{next(_numbers)}")
    with pytest.raises(StoreError, match="`runvitals store repair`"):
        runs(pair)
    assert main(["store", "repair", *pair.options]) == 0
    assert main(["store", "check", *pair.options]) == 0
    assert sorted(runs(pair)[f"recovered-{lane}"].values()) == [10, 10]


def test_metadata_of_another_store_is_left_alone(pair: Pair, tmp_path: Path) -> None:
    record(pair, "otter", "cpu")
    other = Pair(str(tmp_path / "other"), str(tmp_path / "other" / "catalogue.db"), tmp_path / "other-data")
    record(other, "badger", "cpu")
    mixed = Pair(pair.samples, other.metadata, pair.folder)
    with pytest.raises(StoreError, match="belongs to a different store than"):
        runs(mixed)
    assert main(["store", "repair", *mixed.options]) == 1
    assert runs(other) == {"badger": {"cpu": 10}}
    assert runs(pair) == {"otter": {"cpu": 10}}
