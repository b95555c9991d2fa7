"""What doors store: numbered, checked and durable as our own envelopes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import Request
from starlette.responses import JSONResponse, Response

from runvitals.server.access.permission import needs
from runvitals.server.doors.recording import WriterNumbers, heartbeat, records, samples
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import door_recorder
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

NOW_MS = 1_760_000_000_000

router = Router()


@router.post("/door", needs("authenticated"))
async def door(request: Request) -> Response:
    """A door whose clients send {"run", "t", "cpu", "text"}; each is optional but the run."""
    sent = await request.json()
    doors, run = door_recorder(request), sent["run"]
    envelopes = []
    if "cpu" in sent:
        column = np.array([[value] for value in sent["cpu"]])
        envelopes.append(samples(run, "monitor.node1.0", ["cpu"], sent["t"], column, project="p"))
    if "text" in sent:
        line = {"t": NOW_MS, "name": "said", "level": "info", "text": sent["text"]}
        envelopes.append(records(run, "monitor.node1.0", [(7, "event", line)]))
    try:
        with doors.in_flight(int(request.headers["content-length"])):
            acks = await doors.record(request.scope, envelopes or [heartbeat(run, "monitor.node1.0")], 100)
    except HttpRejection as error:
        return JSONResponse({"message": error.text}, error.status)
    return JSONResponse([(ack.seq is not None, ack.stored) for ack in acks])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("doors"), routers=[router]) as served:
        yield served


def send(served: Served, **sent: Any) -> httpx.Response:
    return httpx.post(f"{served.url}/door", json=sent, timeout=PATIENCE_S)


def test_requests_without_numbers_are_all_stored(served: Served) -> None:
    for second in range(3):
        response = send(served, run="r1", t=[NOW_MS + 1000 * second], cpu=[float(second)])
        assert response.json() == [[True, True]]
    parameters = {"keys": "cpu", "resolution": "raw"}
    metrics = httpx.get(f"{served.url}/api/v1/runs/r1/metrics", params=parameters, timeout=PATIENCE_S).json()
    (group,) = metrics["groups"]
    assert group["series"] == {"cpu": [0.0, 1.0, 2.0]}


def test_a_repeated_record_is_stored_once(served: Served) -> None:
    for _ in range(2):
        assert send(served, run="r2", text="hello").status_code == 200
    events = httpx.get(f"{served.url}/api/v1/runs/r2/events", timeout=PATIENCE_S).json()
    assert [event["text"] for event in events] == ["hello"]


def test_a_heartbeat_needs_no_number(served: Served) -> None:
    assert send(served, run="r3").json() == [[False, False]]


def test_an_invalid_envelope_is_rejected_as_our_own(served: Served) -> None:
    response = send(served, run="a/b", t=[NOW_MS], cpu=[1.0])
    assert (response.status_code, "a/b" in response.json()["message"]) == (422, True)
    assert send(served, run="r4", t=[5], cpu=[1.0]).status_code == 422


def test_numbers_never_repeat_and_have_no_gaps() -> None:
    now = [1000]
    numbers = WriterNumbers(lambda: now[0])
    first = numbers.next("", "r", "w")
    now[0] += 500
    assert [numbers.next("", "r", "w") - first for _ in range(3)] == [1, 2, 3]
    after_restart = WriterNumbers(lambda: now[0])
    assert after_restart.next("", "r", "w") > first + 3
