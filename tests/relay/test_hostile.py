"""Arbitrary journals, delivered by the relay to a server, whose pages must still work."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings

from runvitals.journal import frames, paths
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import RunDelivery
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.server.library.stored.run_library import StoredLibrary
from runvitals.server.local_app import create_app
from tests.model.hostile import T0
from tests.readers.journals.hostile import Payload, journals, json_payload, plant, steps
from tests.readers.journals.journals import Training
from tests.relay.journals import HOST
from tests.relay.receiver import Receiver, now_ms
from tests.server.client import Client

PATHS = (
    "runs",
    "projects",
    "fields",
    "latest",
    "runs/{run}",
    "runs/{run}/events",
    "runs/{run}/console",
    "runs/{run}/series",
    "runs/{run}/metrics",
    "runs/{run}/metrics?max_points=2",
    "runs/{run}/metrics?names=mlflow",
    "runs/{run}/statistics",
    "runs/{run}/history",
    "runs/{run}/history?max_points=2",
    "runs/healthy",
    "runs/healthy/metrics",
)
_numbers = itertools.count()
_NULLS = [
    json_payload(
        frames.START, dict.fromkeys(("t", "host", "role", "interval_s", "pid", "boot_id", "labels"))
    ),
    json_payload(frames.EVENT, {"t": None, "name": None, "level": None, "text": None}),
    json_payload(frames.EVENT, {"t": T0, "name": "alert", "level": None, "title": None}),
    json_payload(frames.LIFECYCLE, {"t": None, "what": "attach", "pid": 1, "rank": None}),
    json_payload(frames.INFO, dict.fromkeys(("t", "run", "config", "machine", "sources", "logged"))),
    json_payload(frames.HISTORY, {"t": None, "step": None, "data": None}),
]
_LOST = json_payload(frames.EVENT, {"t": T0, "name": "records_lost"})
_ODD_ROW = json_payload(frames.HISTORY, {"t": T0, "step": None, "data": {"": 1, "_step": 2, "x": 1e308}})


class Pages(Client):
    """A client of the pages over what a receiver has stored."""

    def __init__(self, receiver: Receiver) -> None:
        self.now_ms = now_ms()
        self.app = create_app("/none", lambda: self.now_ms)
        self.app.state.services.library = StoredLibrary(
            receiver.store, receiver.metadata_store, lambda: self.now_ms
        )


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path_factory.mktemp("server")))
    yield receiver
    receiver.close()


def deliver(directory: Path, run_id: str, receiver: Receiver) -> Cursor:
    cursor = Cursor(paths.run_dir(run_id, str(directory)), DestinationSpec(receiver.url), HOST)
    assert cursor.lock()
    delivery = RunDelivery(cursor)
    while delivery.step(0.0, flush=True):
        pass
    delivery.close()
    cursor.unlock()
    return cursor


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(journals, steps)
@example({"train.node1.4711.199c7f9d400": [_LOST, _ODD_ROW]}, 1)
@example({"train.node1.4711.199c7f9d400": _NULLS}, 1)
def test_server_pages_survive_any_journal(
    receiver: Receiver, journal: dict[str, list[Payload]], number_step: int
) -> None:
    run = f"run{next(_numbers)}"
    with tempfile.TemporaryDirectory() as folder:
        training = Training(Path(folder), "healthy")
        training.advance(2)
        deliver(Path(folder), "healthy", receiver)
        plant(Path(folder), run, journal, number_step)
        deliver(Path(folder), run, receiver)
    pages = Pages(receiver)
    for path in PATHS:
        response = pages.get(f"/api/v1/{path.format(run=run)}")
        assert response.status_code in (200, 404, 422), (path, response.text)
        assert response.status_code == 200 or "{run}" in path
