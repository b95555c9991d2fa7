"""The runs of a store are answered as those of journals, call by call, for the same run."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runvitals.model.device import RunDevice, devices_of
from runvitals.server.http import cached_read
from runvitals.server.runs.routes import models
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from tests.readers.journals.journals import T0, Monitor, Trainer, Training
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


@pytest.fixture
def local(tmp_path: Path, server: StoredServer) -> Client:
    return Client(tmp_path)


def same(local: Client, server: StoredServer, path: str, **params: Any) -> Any:
    """The answer of both."""
    mine, theirs = local.ask(path, **params), server.ask(path, **params)
    for response in (mine, theirs):
        if isinstance(response, dict):
            response.pop("cursor", None)
    assert theirs == mine
    return mine


Both = tuple[Client, StoredServer]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A run whose monitor had to be started again, whole in journals and in a store. Tests only read it."""
    folder = tmp_path_factory.mktemp("both")
    server = StoredServer(folder / "server")
    train(folder, server)
    yield Client(folder), server
    server.close()


def train(folder: Path, server: StoredServer) -> None:
    training = Training(folder, gpus=2)
    training.monitor.event(T0 + 5, "alert", "warning", "hot", value=math.inf)
    training.monitor.printed(T0 + 7, "epoch 1\n")
    training.advance(50)
    restarted = Monitor(folder, start_ms=training.now_ms + 20_000)
    training.monitor.close()
    training.monitor = restarted
    training._ticks += 20
    training.advance(150)
    training.end("crashed", signal=9, out_of_memory=True)
    server.take(folder)


def test_stored_events_with_old_names_have_their_present_names(server: StoredServer) -> None:
    (who,) = server.metadata_store.writers.join([WriterRegistration("abc", "monitor.n1.a")], T0)
    server.metadata_store.events.add([StoredEvent(who.run_id, T0, "door_shut", writer_id=who.writer_id)])
    assert [event["name"] for event in server.ask("runs/abc/events")] == ["accept_failed"]
    assert [event["name"] for event in server.ask("runs/abc")["events"]] == ["accept_failed"]


def test_facts(both: Both) -> None:
    local, server = both
    mine, theirs = local.ask("runs/abc"), server.ask("runs/abc")
    models.RunDetail.model_validate(theirs)
    for response in (mine, theirs):
        # A journal knows the newest sample, a store the newest value of each key.
        response["last"] = {host: response["last"][host]["cpu"] for host in response["last"]}
    assert theirs == mine
    same(local, server, "runs/abc/events")
    same(local, server, "runs/abc/console")


def test_lists(both: Both) -> None:
    local, server = both
    same(local, server, "projects")
    same(local, server, "runs", last="cpu")
    same(local, server, "fields")
    for params in (
        {"where": "config.lr < 1"},
        {"mongo_filter": '{"config.lr": {"$lt": 1}, "state": {"$in": ["finished", "failed"]}}'},
        {"where": "config.lr > 1"},
        {"text": "baseline FIRST"},
        {"state": "crashed"},
        {"tag": "nope"},
    ):
        assert same(local, server, "runs", last="cpu", **params) is not None


@pytest.mark.parametrize("keys", [[], ["cpu", "gpu.*"], ["disk.readMBps"], ["disk.*", "memory"]])
@pytest.mark.parametrize("max_points", [1000, 150, 10])
def test_series(both: Both, keys: list[str], max_points: int) -> None:
    """Raw and on the grid, with rates, and the gap between two lives of the monitor."""
    local, server = both
    same(local, server, "runs/abc/metrics", keys=keys, max_points=max_points)
    for t0, t1 in ((T0 + 12_345, T0 + 34_567), (T0 + 45_000, T0 + 95_000), (T0 + 60_000, T0 + 61_000)):
        same(local, server, "runs/abc/metrics", keys=keys, max_points=max_points, t0=t0, t1=t1)
    same(local, server, "runs/abc/metrics", keys=keys, resolution="raw")


def test_the_list_of_series(both: Both) -> None:
    local, server = both
    same(local, server, "runs/abc/series")
    mine, theirs = local.ask("runs/abc/statistics"), server.ask("runs/abc/statistics")
    assert theirs == mine
    models.StatisticsSchema.model_validate(theirs[0])


@pytest.mark.parametrize(
    "chosen",
    [{"host": "node1"}, {"host": "x"}, {"rank": 0}, {"rank": 3}, {"device": "1"}, {"writer": "monitor.*"}],
)
def test_selected_series(both: Both, chosen: dict[str, str]) -> None:
    local, server = both
    same(local, server, "runs/abc/series", **chosen)
    same(local, server, "runs/abc/metrics", **chosen)


def test_a_device_by_its_uuid(tmp_path: Path, server: StoredServer) -> None:
    train(tmp_path, server)
    row = server.metadata_store.runs.find("abc", T0)
    assert row is not None
    server.metadata_store.devices.record(row.id, [RunDevice("node1", uuid="GPU-1", position=1)], T0)
    keys = {series["key"] for series in server.ask("runs/abc/series", device="GPU-1")}
    assert keys == {
        f"gpu.1.{name}" for name in ("gpu", "memory", "memoryAllocated", "temp", "powerWatts", "smClock")
    }


def test_runs_that_used_a_device(tmp_path: Path, local: Client, server: StoredServer) -> None:
    seen = {
        "a": [{"index": 0, "uuid": "GPU-1", "used": True}, {"index": 1, "uuid": "GPU-2", "used": False}],
        "b": [{"index": 0, "uuid": "GPU-1", "used": None}, {"index": 1, "pci": "0000:01:00.0"}],
        "c": [{"index": 0, "uuid": "GPU-2", "used": True}],
    }
    for number, (run_id, gpus) in enumerate(seen.items()):
        Monitor(tmp_path, run_id, start_ms=T0 + number).info(T0 + number, machine={"gpu_nvidia": gpus})
        server.take(tmp_path, run_id)
        row = server.metadata_store.runs.find(run_id, T0)
        assert row is not None
        server.metadata_store.devices.record(row.id, devices_of("node1", {"gpu_nvidia": gpus}), T0)
    for device, runs in (("GPU-1", ["b", "a"]), ("GPU-2", ["c"]), ("node1/0000:01:00.0", ["b"]), ("x", [])):
        for client in (local, server):
            assert [run["id"] for run in client.ask("runs", device=device)["runs"]] == runs


def test_logged_values(both: Both) -> None:
    local, server = both
    for params in ({}, {"max_points": 10}, {"keys": "loss"}, {"rank": 1}):
        same(local, server, "runs/abc/history", **params)


def test_ranks_are_separate(tmp_path: Path, local: Client, server: StoredServer) -> None:
    for rank in (0, 1):
        trainer = Trainer(tmp_path, pid=100 + rank, rank=rank)
        trainer.log(T0, 0, loss=1.0 + rank)
        trainer.log(T0 + 1000, 1, loss=0.5 + rank, eval=0.1)
    server.take(tmp_path)
    same(local, server, "runs/abc/history")
    same(local, server, "runs/abc/history/names")
    same(local, server, "runs/abc/history", rank=1)


def test_news_since_a_cursor(tmp_path: Path, local: Client, server: StoredServer) -> None:
    training = Training(tmp_path)
    training.advance(3)
    seen = server.take(tmp_path)
    first = [client.ask("runs/abc/metrics", keys="cpu")["cursor"] for client in (local, server)]
    training.advance(2)
    server.take(tmp_path, after=seen)
    mine, theirs = (
        client.ask("runs/abc/metrics", after=cursor)
        for client, cursor in zip((local, server), first, strict=True)
    )
    models.News.model_validate(theirs)
    assert theirs["samples"] == mine["samples"]
    assert theirs["calls"] == mine["calls"]
    assert [sample["t"] for sample in theirs["samples"]] == [T0 + 3000, T0 + 4000]
    assert "disk.readMBps" in theirs["samples"][0]["values"]
    again = server.ask("runs/abc/metrics", after=theirs["cursor"])
    assert "samples" not in again


def test_latest_of_all_active_runs(tmp_path: Path, server: StoredServer, local: Client) -> None:
    for run_id, project in (("a", "digits"), ("b", "other"), ("c", "digits")):
        training = Training(tmp_path, run_id, project=project)
        training.advance(5)
        if run_id == "c":
            training.end(exit_code=0)
    local.now_ms = server.now_ms = T0 + 5000
    for run_id in ("a", "b", "c"):
        server.take(tmp_path, run_id)
    assert [latest["run"] for latest in server.ask("latest", keys="cpu")] == ["a", "b"]
    (mine,), (theirs,) = (client.ask("latest", keys="cpu", project="other") for client in (local, server))
    models.LatestSchema.model_validate(theirs)
    assert theirs["values"] == mine["values"]


def test_one_metric_over_many_runs(tmp_path: Path, server: StoredServer, local: Client) -> None:
    local.now_ms = server.now_ms = T0 + 30_000
    for number, (run_id, project) in enumerate((("a", "digits"), ("b", "other"), ("c", "digits"))):
        training = Training(tmp_path, run_id, project=project, seed=number, gpus=2, host=f"node{number}")
        training.advance(30)
        server.take(tmp_path, run_id)
    for by in (None, "project", "host", "run", "state"):
        for metric in ("cpu", "gpu.*.gpu"):
            params: dict[str, Any] = {"metric": metric, "t0": T0 + 3500, "t1": T0 + 24_000, "bucket": 10_000}
            params |= {"group_by": by} if by else {}
            mine, theirs = local.ask("aggregate", **params), server.ask("aggregate", **params)
            models.Aggregate.model_validate(theirs)
            for group, other in zip(theirs["groups"], mine["groups"], strict=True):
                assert group.pop("mean") == pytest.approx(other.pop("mean"))
            assert theirs == mine
    assert len(server.ask("aggregate", metric="cpu", t0=T0, t1=T0 + 60_000)["groups"]) == 1


def test_a_run_is_stopped_deleted_and_restored(tmp_path: Path, server: StoredServer) -> None:
    training = Training(tmp_path)
    training.advance(2)
    server.now_ms = training.now_ms
    server.take(tmp_path)
    assert set(server.ask("about")["capabilities"]) >= {"stop", "delete", "edit"}
    assert server.request("POST", "/api/v1/runs/abc/stop").status_code == 403
    assert server.request("POST", "/api/v1/runs/abc/stop", json={}).json() == {"run": "abc", "done": "stop"}
    assert server.ask("runs/abc")["stop_requested_ms"] == server.now_ms
    edited = server.request("PATCH", "/api/v1/runs/abc", json={"tags": ["x", "y"], "notes": "so so"})
    assert edited.status_code == 200
    run = server.ask("runs/abc")
    assert (run["tags"], run["notes"], run["name"]) == (["x", "y"], "so so", "abc")
    assert server.request("PATCH", "/api/v1/runs/abc", json={"shoe": 1}).status_code == 422
    token = {"authorization": "Bearer rvt_x"}
    assert server.request("DELETE", "/api/v1/runs/abc", headers=token).status_code == 200
    gone = server.get("/api/v1/runs/abc")
    assert (gone.status_code, "restore" in gone.json()["error"]) == (404, True)
    assert [run["id"] for run in server.ask("runs", deleted=True)["runs"]] == ["abc"]
    assert server.request("POST", "/api/v1/runs/abc/restore", json={}).status_code == 200
    training.end(exit_code=0)
    server.take(tmp_path)
    ended = server.request("POST", "/api/v1/runs/abc/stop", json={})
    assert (ended.status_code, "only a running run" in ended.json()["error"]) == (409, True)
    assert server.request("POST", "/api/v1/runs/nope/stop", json={}).status_code == 404


def test_samples_before_the_start_of_the_run_are_found(server: StoredServer) -> None:
    """A client that does not say when it began counts from its first request, of samples of last week."""
    (who,) = server.metadata_store.writers.join([WriterRegistration("abc", "curl")], T0)
    t = np.arange(T0 - 7 * 86_400_000, T0 - 7 * 86_400_000 + 100_000, 1000)
    server.append(who, ("cpu",), t, np.arange(100.0).reshape(-1, 1))
    response = server.ask("runs/abc/metrics")
    assert (response["t0"], response["t1"]) == (t[0], t[-1])
    (series,) = server.ask("runs/abc/series")
    assert (series["first_ms"], series["last_ms"], series["n"]) == (t[0], t[-1], 100)


def test_pages_continue(tmp_path: Path, server: StoredServer) -> None:
    for number in range(5):
        Monitor(tmp_path, f"run{number}", start_ms=T0 + number).end(T0 + 10)
        server.take(tmp_path, f"run{number}")
    first = server.ask("runs", limit=2)
    assert first["total"] == 5
    second = server.ask("runs", limit=2, after=first["next"])
    assert [run["id"] for run in (*first["runs"], *second["runs"])] == ["run4", "run3", "run2", "run1"]
    error = json.loads(server.get("/api/v1/runs?after=junk").content)["error"]
    assert error.startswith("invalid after='junk'")


@pytest.mark.parametrize(
    ("sort", "descending"),
    [("started_ms", True), ("started_ms", False), ("name", False), ("summary.loss", True)],
)
def test_pages_are_stable_while_runs_start(
    tmp_path: Path, server: StoredServer, sort: str, descending: bool
) -> None:
    """Every run that was there at the first page is on one page, once, even if runs are added meanwhile."""

    def starts(number: int, started_ms: int) -> str:
        joining = WriterRegistration(f"run{number}", "curl", "digits", started_ms=started_ms)
        (who,) = server.metadata_store.writers.join([joining], server.now_ms)
        loss = {"loss": float(number % 4)} if number % 3 else {}
        server.metadata_store.sections.merge([SectionUpdate(who.run_id, "summary", loss, server.now_ms)])
        return f"run{number}"

    there = {starts(number, T0 + number // 3) for number in range(20)}
    seen: list[str] = []
    following: str | None = None
    for page in range(100):
        after = {"after": following} if following else {}
        response = server.ask("runs", sort=sort, descending=descending, limit=3, **after)
        seen += [run["id"] for run in response["runs"]]
        following = response["next"]
        if following is None:
            break
        starts(100 + 2 * page, T0 - page)
        starts(101 + 2 * page, T0 + 1000 + page)
        if page > 30:
            break
    assert len(seen) == len(set(seen))
    assert there <= set(seen)


def test_a_failing_metadata_store_is_reported(server: StoredServer, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "server" / "catalogue.db")) as connection:
        connection.execute("ALTER TABLE run RENAME TO elsewhere")
    refused = server.request("PATCH", "/api/v1/runs/abc", json={"notes": "so so"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert "the metadata store is unavailable" in refused.json()["error"]
