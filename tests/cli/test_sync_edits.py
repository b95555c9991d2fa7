"""Edits made on this machine reach a real server by `runvitals sync`, before and after the first time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from runvitals.cli import main
from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.monitor.relay_connection import ask
from runvitals.relay.edit_delivery import deliver_edits
from runvitals.server.library.local.run_edits import RunEdits
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S, eventually
from tests.server.serving import Served, serving

HOUR = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Synced:
    """A run of this machine, and a server."""

    def __init__(self, data: Path, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = str(data)
        self.edits = RunEdits(self.directory)
        self.served = served
        self.http = httpx.Client(base_url=f"{served.url}/api/v1/", timeout=PATIENCE_S)
        self._capsys = capsys

    def edit(self, at_ms: int, **values: Any) -> None:
        self.edits.record("one", values, at_ms)

    def sync(self, expected: int = 0) -> str:
        assert main(["sync", "one", "--to", self.served.url]) == expected
        captured = self._capsys.readouterr()
        return captured.out + captured.err

    def ask(self, method: str, path: str, **body: Any) -> Any:
        response = self.http.request(method, path, json=body or {})
        assert response.status_code == 200, response.text
        return response.json()

    def run(self) -> dict[str, Any]:
        response = self.http.get("runs/one")
        assert response.status_code == 200, response.text
        run: dict[str, Any] = response.json()
        return run

    def trash(self) -> list[str]:
        return [run["id"] for run in self.http.get("runs", params={"deleted": True}).json()["runs"]]

    def listed(self) -> list[str]:
        return [run["id"] for run in self.http.get("runs").json()["runs"]]


@pytest.fixture
def one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Synced]:
    data = tmp_path / "data"
    monkeypatch.setenv("RUNVITALS_DIR", str(data))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    started_ms = now_ms() - 10 * HOUR
    about = {"run": "one", "project": "digits", "host": "node1", "role": "monitor", "t": started_ms}
    folder = paths.run_dir("one", str(data))
    journal = JournalWriter(folder, "monitor.node1.1", {**about, "interval_s": 1.0})
    journal.json(frames.INFO, {"t": started_ms, "run": {"name": "first", "tags": ["a"]}})
    journal.sample(started_ms + 1000, {"cpu": 1.0})
    end = {"t": started_ms + 5000, "what": "end", "state": "finished", "exit_code": 0}
    journal.json(frames.LIFECYCLE, end)
    journal.close()
    with serving(tmp_path / "server") as served:
        synced = Synced(data, served, capsys)
        yield synced
        synced.http.close()
        synced.edits.close()


def test_edits_before_the_first_sync_arrive_with_the_run(one: Synced) -> None:
    one.edit(now_ms() - HOUR, name="名字", tags=["a", "b"], notes="n", project="other", starred=True)
    one.sync()
    run = one.run()
    assert (run["name"], run["tags"], run["notes"]) == ("名字", ["a", "b"], "n")
    assert (run["project"], run["starred"], run["state"]) == ("other", True, "finished")
    # The run was created where it was moved to: no empty project stays behind.
    assert [project["name"] for project in one.http.get("projects").json()] == ["other"]
    # The edit is no writer of the run: neither a host, nor a process, nor a sign of life.
    assert [host["name"] for host in run["hosts"]] == ["node1"]
    assert run["ended_ms"] - run["started_ms"] == 5000
    assert run["ranks"] == []


def test_edits_after_the_first_sync_arrive_and_sync_twice_changes_nothing(one: Synced) -> None:
    one.sync()
    one.edit(now_ms(), name="second", project="moved")
    assert "1 other records" in one.sync()
    before = one.run()
    assert (before["name"], before["project"], before["tags"]) == ("second", "moved", ["a"])
    events = one.http.get("runs/one/events").json()
    assert "0 samples, 0 log() rows, 0 other records" in one.sync()
    assert one.run() == before
    assert one.http.get("runs/one/events").json() == events
    one.edit(now_ms(), name="third", starred=True)
    one.sync()
    assert (one.run()["name"], one.run()["starred"]) == ("third", True)


def test_the_later_edit_wins_fact_by_fact(one: Synced) -> None:
    one.sync()
    one.edit(now_ms() - HOUR, name="local, earlier", notes="only local")
    one.ask("PATCH", "runs/one", name="on the server")
    time.sleep(0.005)
    one.sync()
    assert (one.run()["name"], one.run()["notes"]) == ("on the server", "only local")
    one.edit(now_ms(), name="local, later")
    one.sync()
    assert one.run()["name"] == "local, later"


def test_a_clock_that_is_ahead_does_not_win_forever(one: Synced) -> None:
    one.sync()
    one.edit(now_ms() + 48 * HOUR, name="from the future")
    one.sync()
    assert one.run()["name"] == "from the future"
    one.ask("PATCH", "runs/one", name="now")
    one.sync()
    assert one.run()["name"] == "now"


def test_a_run_deleted_here_goes_to_the_trash_there_and_comes_back(one: Synced) -> None:
    one.sync()
    one.edit(now_ms(), deleted=True)
    one.sync()
    assert (one.listed(), one.trash()) == ([], ["one"])
    one.edit(now_ms(), deleted=False)
    one.edit(now_ms(), name="back")
    one.sync()
    assert (one.listed(), one.trash(), one.run()["name"]) == (["one"], [], "back")
    one.edit(now_ms(), deleted=True)
    one.edit(now_ms() + 1, deleted=False)
    one.sync()
    assert one.listed() == ["one"]


def test_a_run_restored_there_stays_when_an_older_deletion_arrives(one: Synced) -> None:
    one.sync()
    earlier_ms = now_ms()
    time.sleep(0.005)
    one.ask("DELETE", "runs/one")
    one.ask("POST", "runs/one/restore")
    one.edit(earlier_ms, deleted=True)
    one.sync()
    assert one.listed() == ["one"]


def test_a_run_deleted_there_stays_when_an_older_restoration_arrives(one: Synced) -> None:
    one.sync()
    earlier_ms = now_ms()
    time.sleep(0.005)
    one.ask("DELETE", "runs/one")
    one.edit(earlier_ms, deleted=False)
    one.sync()
    assert one.trash() == ["one"]


def test_an_edit_of_a_run_in_the_trash_there_is_taken(one: Synced) -> None:
    one.sync()
    one.ask("DELETE", "runs/one")
    one.edit(now_ms(), name="renamed")
    one.sync()
    assert one.trash() == ["one"]
    one.ask("POST", "runs/one/restore")
    assert one.run()["name"] == "renamed"


def test_a_run_in_the_trash_is_not_delivered_for_the_first_time(one: Synced) -> None:
    one.edit(now_ms(), deleted=True)
    assert "one is in the trash of this machine: it is not delivered" in one.sync()
    assert (one.listed(), one.trash()) == ([], [])
    one.edit(now_ms(), deleted=False)
    one.sync()
    assert one.listed() == ["one"]


def test_edits_of_other_processes_and_unknown_facts_are_no_obstacle(one: Synced) -> None:
    one.sync()
    one.edit(now_ms(), newer_version={"x": 1}, name="known")
    RunEdits(one.directory).record("one", {"tags": ["t"]}, now_ms())
    one.sync()
    assert (one.run()["name"], one.run()["tags"]) == ("known", ["t"])
    one.edit(now_ms(), tags="not a list")
    assert "1 batches were rejected" in one.sync(1)
    one.edit(now_ms(), notes="later ones follow")
    one.sync(1)
    assert one.run()["notes"] == "later ones follow"


def test_an_edit_on_the_page_starts_the_relay_of_a_run_that_was_delivered(
    one: Synced, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(one.directory, edited=lambda run_id: deliver_edits(run_id, one.directory))

    async def rename(name: str) -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8900") as client:
            (await client.patch("/api/v1/runs/one", json={"name": name})).raise_for_status()

    monkeypatch.setenv("RUNVITALS_SERVER", one.served.url)
    anyio.run(rename, "before")  # nothing was delivered yet, and nothing is now
    assert ask(one.directory, {"op": "hello"}, PATIENCE_S) is None
    one.sync()
    assert one.run()["name"] == "before"
    anyio.run(rename, "after")
    eventually(lambda: one.run()["name"] == "after")
    relay = ask(one.directory, {"op": "hello"}, PATIENCE_S)
    if relay is not None:  # it has not ended by itself yet
        os.kill(relay["pid"], signal.SIGTERM)
        eventually(lambda: ask(one.directory, {"op": "hello"}, PATIENCE_S) is None)
