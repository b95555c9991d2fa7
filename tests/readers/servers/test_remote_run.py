"""A `RemoteRun` returns the same as `open_run` for the same run."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import runvitals
from runvitals.readers.servers import Client, RemoteRun, ServerError, UnknownRun
from runvitals.server.http import cached_read as freshness
from tests.readers.journals.journals import T0, Monitor, Trainer, Training
from tests.readers.servers.serving import serving
from tests.server.stored_runs import StoredServer


@pytest.fixture
def training(tmp_path: Path) -> Training:
    training = Training(tmp_path, gpus=2)
    training.monitor.event(T0 + 5, "alert", "warning", "hot", value=90.5)
    training.advance(40)
    training.end("crashed", signal=9, out_of_memory=True)
    return training


def test_facts(training: Training, client: Client, tmp_path: Path) -> None:
    here, there = runvitals.open_run("abc", str(tmp_path)), client.run("abc")
    assert there.facts == here.facts
    assert (there.state, there.config["lr"], there.summary["loss"]) == ("crashed", 0.001, 0.08)
    assert there.events() == here.events
    assert there.statistics("cpu", "disk.in") == here.statistics("cpu", "disk.in")


@pytest.mark.parametrize("patterns", [(), ("cpu", "gpu.*"), ("disk.readMBps",)])
def test_every_sample(training: Training, client: Client, tmp_path: Path, patterns: tuple[str, ...]) -> None:
    here = runvitals.open_run("abc", str(tmp_path)).metrics(*patterns)
    there = client.run("abc").metrics(*patterns)
    assert set(there) == set(here)
    for key, (t, values) in there.items():
        assert t.dtype == np.int64
        np.testing.assert_array_equal(t, here[key].t)
        np.testing.assert_array_equal(values, here[key].values)
    assert there["cpu" if patterns != ("disk.readMBps",) else "disk.readMBps"].host == "node1"


def test_downsampling_and_time_range(training: Training, client: Client) -> None:
    run = client.run("abc")
    assert len(run.metrics("cpu", max_points=10)["cpu"]) <= 10
    assert len(run.metrics("cpu", max_points=10, resolution="raw")["cpu"]) == 40
    assert run.metrics("cpu", t0=T0 + 1000, t1=T0 + 3000)["cpu"].t.tolist() == [
        T0 + 1000,
        T0 + 2000,
        T0 + 3000,
    ]
    assert set(run.metrics(device="1")) == {
        f"gpu.1.{name}" for name in ("gpu", "memory", "memoryAllocated", "temp", "powerWatts", "smClock")
    }


def test_a_gap_is_nan(client: Client, tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": math.nan})
    monitor.sample(T0 + 1000, {"cpu": 2.0})
    np.testing.assert_array_equal(client.run("abc").metrics("cpu")["cpu"].values, [math.nan, 2.0])


def test_rows_are_joined_from_groups(client: Client, tmp_path: Path) -> None:
    """Names that were logged at different steps are in different groups."""
    for rank in (0, 1):
        trainer = Trainer(tmp_path, pid=100 + rank, rank=rank)
        trainer.log(T0 + rank, 0, loss=1.0 + rank)
        trainer.log(T0 + 1000 + rank, 1, loss=0.5, train={"accuracy": 0.9})
        trainer.log(T0 + 1000 + rank, 1, loss=0.4)
    calls = client.run("abc").history()
    assert [(call.rank, call.step, call.time_ms - T0, call.data) for call in calls] == [
        (0, 0, 0, {"loss": 1.0}),
        (1, 0, 1, {"loss": 2.0}),
        (0, 1, 1000, {"loss": 0.5, "train.accuracy": 0.9}),
        (0, 1, 1000, {"loss": 0.4}),
        (1, 1, 1001, {"loss": 0.5, "train.accuracy": 0.9}),
        (1, 1, 1001, {"loss": 0.4}),
    ]
    assert len(client.run("abc").history("train.accuracy", rank=1)) == 1


def test_all_rows_of_a_long_run(client: Client, tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    for step in range(1500):
        trainer.log(T0 + step, step, loss=1 / (step + 1))
    Monitor(tmp_path).end(T0 + 1500)
    calls = client.run("abc").history()
    assert [(call.step, call.data["loss"]) for call in calls] == [
        (step, 1 / (step + 1)) for step in range(1500)
    ]


def test_running_run_is_refreshed(client: Client, tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.advance(30)
    run = client.run("abc")
    assert run.state == "running"
    training.end(exit_code=0)
    assert (run.state, run.refresh().state, run.facts.exit_code) == ("running", "finished", 0)


def test_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "FRESH_S", 0.0)
    shared = StoredServer(tmp_path / "server")
    training = Training(tmp_path)
    training.advance(2)
    shared.now_ms = training.now_ms
    shared.take(tmp_path)
    with serving(shared.app) as url, Client(url) as client:
        run = client.run("abc")
        run.stop()
        assert run.refresh().facts.stop_requested_ms == shared.now_ms
        training.end(exit_code=0)
        shared.take(tmp_path)
        with pytest.raises(ServerError, match="only a running run") as refused:
            run.stop()
        assert refused.value.status == 409
    shared.close()


def test_journals_cannot_be_stopped(training: Training, client: Client) -> None:
    with pytest.raises(ServerError, match="this server shows the journals of this machine") as refused:
        client.run("abc").stop()
    assert refused.value.status == 405


def test_unknown_run(training: Training, client: Client) -> None:
    with pytest.raises(UnknownRun, match=r"no run 'abd' in .*; did you mean abc") as error:
        client.run("abd")
    assert isinstance(error.value, LookupError)
    with pytest.raises(UnknownRun):
        client.run("../about")


def test_client_without_numpy_and_server_packages(training: Training, url: str) -> None:
    script = """
import sys
for name in ("numpy", "fastapi", "pydantic", "httpx"):
    sys.modules[name] = None
import runvitals
run = runvitals.Client(sys.argv[1]).run("abc")
t, values = run.metrics("cpu")["cpu"]
print(type(t).__name__, type(values).__name__, len(values), run.statistics("cpu")[0].n, len(run.history()))
"""
    done = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=False)
    assert done.stdout == "list list 40 40 40\n", done.stderr


def test_tables(client: Client, tmp_path: Path) -> None:
    training = Training(tmp_path, gpus=1)
    training.advance(30)
    run = client.run("abc")
    series = run.metrics("gpu.*")["gpu.0.powerWatts"]
    table = run.table("gpu.*")
    assert table["gpu.0.powerWatts"].to_pylist() == series.values.tolist()
    assert table["t"].cast("int64").to_pylist() == series.t.tolist()
    assert run.table("cpu", max_points=10).num_rows <= 10
    logged = run.history_table()
    assert logged["loss"].to_pylist() == [call.data["loss"] for call in run.history()]
    with pytest.raises(UnknownRun):
        RemoteRun(run._connection, {"id": "nope"}).table()
    with pytest.raises(ServerError, match="is before t0") as refused:
        run.table(t0=2, t1=1)
    assert refused.value.status == 422


def test_tables_require_pyarrow(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Training(tmp_path).advance(1)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        client.run("abc").table()
