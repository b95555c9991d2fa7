"""Edits of a run that goes on, and of one that was delivered, at a real server with and without accounts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.base.http_client import HttpClient
from runvitals.base.json_codec import loads
from runvitals.journal import paths
from runvitals.relay.engine.backlog import deliver_remaining
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import DELIVERED, RunDelivery
from runvitals.relay.engine.delivery_thread import DeliveryThread
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.relay.engine.undelivered import find_undelivered
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.library.local.run_edits import RunEdits
from tests.patience import eventually
from tests.relay.journals import HOST, RUN, Journal
from tests.relay.receiver import now_ms
from tests.server.accounts_server import accounts_server
from tests.server.serving import Served, serving


class LiveRun:
    """A run that is delivered while it goes on, by a thread whose clock the test advances."""

    def __init__(self, journal: Journal, url: str, environ: dict[str, str]) -> None:
        self.directory = str(Path(journal.folder).parent.parent)
        self.edits = RunEdits(self.directory)
        self.spec = DestinationSpec(url)
        self._now_s = 1000.0
        self.thread = DeliveryThread(url, lambda: self._now_s, lambda run_id, text: None)
        self._environ = environ
        self.deliveries: list[RunDelivery] = []

    def serve(self, folder: str, live: bool) -> Cursor:
        cursor = Cursor(folder, self.spec, HOST)
        assert cursor.lock()
        cursor.closed = ""
        delivery = RunDelivery(cursor, environ=self._environ)
        delivery.live = live
        self.thread.serve(delivery)
        self.deliveries.append(delivery)
        return cursor

    def work(self, seconds: int) -> None:
        for _ in range(seconds):
            self._now_s += 1
            while self.thread.wait_s(self._now_s) <= 0 and self.thread.serve_due(self._now_s):
                pass

    def close(self) -> None:
        self.edits.close()
        for delivery in self.deliveries:
            delivery.close()
            delivery.cursor.unlock()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "server") as served:
        yield served


@pytest.fixture
def live(journal: Journal, served: Served, tmp_path: Path) -> Iterator[LiveRun]:
    run = LiveRun(journal, served.url, {"XDG_CONFIG_HOME": str(tmp_path)})
    yield run
    run.close()


def ask(served: Served, path: str, method: str = "GET") -> object:
    http = HttpClient(served.url)
    try:
        response = http.request(method, f"/api/v1/{path}", b"{}", {"Content-Type": "application/json"})
    finally:
        http.close()
    assert response.status == 200, response.text()
    return loads(response.body)


def name(served: Served) -> str:
    run = ask(served, f"runs/{RUN}")
    assert isinstance(run, dict)
    return str(run["name"])


def test_a_running_run_is_renamed_at_the_server(journal: Journal, served: Served, live: LiveRun) -> None:
    live.serve(journal.folder, live=True)
    journal.sample(0, cpu=0.0)
    live.work(10)
    live.edits.record(RUN, {"name": "live"}, now_ms())
    live.work(10)
    assert name(served) == "live"
    live.edits.record(RUN, {"name": "live again"}, now_ms())
    journal.sample(1, cpu=0.0)
    live.work(10)
    assert name(served) == "live again"
    run = ask(served, f"runs/{RUN}")
    assert isinstance(run, dict)
    assert run["state"] == "running"


def test_a_running_run_is_deleted_and_restored(journal: Journal, served: Served, live: LiveRun) -> None:
    cursor = live.serve(journal.folder, live=True)
    journal.sample(0, cpu=0.0)
    live.work(10)
    live.edits.record(RUN, {"deleted": True}, now_ms())
    sampled: list[int] = []

    def is_noticed() -> bool:  # the server looks once a second
        sampled.append(len(sampled) + 1)
        journal.sample(sampled[-1], cpu=1.0)
        live.work(11)
        return "the run is in the trash on" in cursor.error

    def is_back() -> bool:
        live.work(11)
        return not cursor.error and not cursor.held

    eventually(is_noticed)
    live.edits.record(RUN, {"deleted": False}, now_ms())
    eventually(is_back)
    assert name(served)
    metrics = ask(served, f"runs/{RUN}/metrics?keys=cpu")
    assert isinstance(metrics, dict)
    assert len(metrics["groups"][0]["t"]) == len(sampled) + 1


def test_an_edit_of_a_delivered_run_is_found_by_the_next_relay(
    journal: Journal, served: Served, live: LiveRun
) -> None:
    cursor = live.serve(journal.folder, live=True)
    journal.sample(0, cpu=0.0)
    journal.end()
    live.work(10)
    live.thread.set_live(RUN, False)
    live.work(10)
    assert cursor.closed == DELIVERED
    assert find_undelivered(live.directory, HOST, [live.spec]) == {}
    live.edits.record(RUN, {"name": "afterwards"}, now_ms())
    (found,) = find_undelivered(live.directory, HOST, [live.spec])[served.url]
    assert found.folder == journal.folder
    live.serve(journal.folder, live=False)
    live.work(10)
    assert name(served) == "afterwards"
    assert find_undelivered(live.directory, HOST, [live.spec]) == {}


def test_other_destinations_get_no_edits(journal: Journal, tmp_path: Path) -> None:
    spec = DestinationSpec(f"files:{tmp_path}/out?format=jsonl")
    journal.sample(0, cpu=0.0)
    RunEdits(str(tmp_path)).record(RUN, {"name": "x"}, now_ms())
    cursor = Cursor(journal.folder, spec, HOST)
    assert cursor.lock()
    delivery = RunDelivery(cursor)
    while delivery.step(0.0, flush=True):
        pass
    delivery.close()
    cursor.unlock()
    assert not [writer for writer in cursor.positions if paths.is_edit(writer)]


def test_a_key_that_may_not_change_runs_delays_only_edits(journal: Journal, tmp_path: Path) -> None:
    with accounts_server(tmp_path / "server") as server:
        user = server.user("ada", org_role="admin")
        keys = {
            scope: server.accounts.keys.create(scope, CLI, server.clock(), user_id=user.id, scope=scope)[0]
            for scope in ("ingest", "write")
        }
        journal.sample(0, cpu=0.0)
        journal.end()
        edits = RunEdits(str(tmp_path))
        edits.record(RUN, {"name": "edited", "starred": True}, now_ms())
        cursor = Cursor(journal.folder, DestinationSpec(server.url), HOST)
        environ = {"XDG_CONFIG_HOME": str(tmp_path), "RUNVITALS_SERVER": server.url}
        deliver_remaining(cursor, lambda wait_s: None, environ={**environ, "RUNVITALS_TOKEN": keys["ingest"]})
        assert cursor.counts["samples"] == 1
        assert cursor.held_records == 2  # with the first record of the file
        assert "a key that may only send runs cannot change them" in cursor.held_why
        environ["RUNVITALS_TOKEN"] = keys["write"]
        deliver_remaining(cursor, lambda wait_s: None, environ=environ)
        assert cursor.held_records == 0
        edits.record(RUN, {"deleted": True}, now_ms())
        deliver_remaining(cursor, lambda wait_s: None, environ=environ)
        (run,) = server.ask("ada", "GET", "runs?deleted=true")["runs"]
        assert (run["id"], run["name"], run["starred"]) == (RUN, "edited", True)
        assert {"run.update", "run.delete"} <= set(server.actions())
