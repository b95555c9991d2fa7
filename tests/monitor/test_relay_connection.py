"""What a monitor hands on to the relay, and its line to it."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from runvitals.monitor.relay_connection import RelayConnection, address, destination_variables

ENVIRON = {
    "MLFLOW_TRACKING_USERNAME": "me",
    "MLFLOWER": "tulip",
    "OTEL_EXPORTER_OTLP_HEADERS": "key=1",
    "REMOTE_WRITE_TOKEN": "t",
    "HTTP_PROXY": "http://proxy",
    "HOME": "/home/me",
}


@pytest.mark.parametrize(
    ("destinations", "names"),
    [
        (["mlflow:http://host:5000#run=0f"], ["MLFLOW_TRACKING_USERNAME"]),
        (["mlflow", "remote-write:http://vm"], ["MLFLOW_TRACKING_USERNAME", "REMOTE_WRITE_TOKEN"]),
        (["http://host:8900", "https://host"], []),
        ([], []),
    ],
)
def test_a_destinations_variables_begin_with_its_name(destinations: list[str], names: list[str]) -> None:
    own = destination_variables(destinations, ENVIRON)
    assert sorted(own.keys() - {"RUNVITALS_DESTINATIONS"}) == names


WEEK_S = 7 * 24 * 3600


def test_a_relay_that_cannot_be_had_for_a_week_is_asked_for_once_a_minute() -> None:
    attempts: list[int] = []

    def reach(directory: str) -> None:
        attempts.append(now_s)

    line = RelayConnection("/data", "abc", ["http://127.0.0.1:8900"], "/home/me", reach)
    for now_s in range(1000, 1000 + WEEK_S):
        assert not line.ensure(float(now_s))
    assert attempts[:6] == [1000, 1001, 1002, 1004, 1008, 1016]
    assert len(attempts) == pytest.approx(WEEK_S / 60, rel=0.01)


def test_a_relay_that_has_lived_well_is_replaced_at_once() -> None:
    theirs: list[socket.socket] = []

    def reach(directory: str) -> socket.socket:
        ours, end = socket.socketpair()
        theirs.append(end)
        return ours

    def dies() -> None:
        theirs.pop().close()
        assert line.messages() == []
        assert line.fd == -1

    line = RelayConnection("/data", "abc", ["http://127.0.0.1:8900"], "/home/me", reach)
    for at_s in (1000.0, 1000.1):
        assert line.ensure(at_s), "the first death costs no wait"
        dies()
    assert not line.ensure(1000.2), "the second one does"
    assert line.ensure(1002.0)
    dies()
    assert not line.ensure(1003.0)
    assert line.ensure(1004.0)
    dies()
    assert line.ensure(1010.0)
    assert not line.ensure(1100.0), "there is one"
    dies()
    assert line.ensure(1100.1)
    line.close()
    theirs.pop().close()


def test_a_long_message_is_sent_as_the_relay_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_LONG", "x" * 1_000_000)
    listener = address(str(tmp_path)).listen()
    assert listener is not None
    line = RelayConnection(str(tmp_path), "abc", ["mlflow:http://host"], "/")
    assert line.ensure(0.0)
    with socket.socket(fileno=listener.detach()) as listening:
        relay, _ = listening.accept()
    heard = b""
    while b"\n" not in heard:
        heard += relay.recv(65536)
        line.ensure(1.0)  # at the next tick
    assert json.loads(heard)["environ"]["MLFLOW_LONG"] == "x" * 1_000_000
    relay.close()
    line.close()
