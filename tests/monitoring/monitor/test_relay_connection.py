"""The monitor's connection to the relay, and the variables that it passes on."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from runvitals.monitoring.monitor.relay_connection import RelayConnection, address, destination_variables

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
def test_the_variables_of_a_destination_begin_with_its_name(
    destinations: list[str], names: list[str]
) -> None:
    own = destination_variables(destinations, ENVIRON)
    assert sorted(own.keys() - {"RUNVITALS_DESTINATIONS"}) == names


WEEK_S = 7 * 24 * 3600


def test_a_week_without_a_relay_costs_an_attempt_per_minute() -> None:
    attempts: list[int] = []

    def connect(directory: str) -> None:
        attempts.append(now_s)

    connection = RelayConnection("/data", "abc", ["http://127.0.0.1:8900"], "/home/me", connect)
    for now_s in range(1000, 1000 + WEEK_S):
        assert not connection.ensure(float(now_s))
    assert attempts[:6] == [1000, 1001, 1002, 1004, 1008, 1016]
    assert len(attempts) == pytest.approx(WEEK_S / 60, rel=0.01)


def test_a_relay_that_was_stable_is_replaced_immediately() -> None:
    relay_ends: list[socket.socket] = []

    def connect(directory: str) -> socket.socket:
        ours, end = socket.socketpair()
        relay_ends.append(end)
        return ours

    def dies() -> None:
        relay_ends.pop().close()
        assert connection.messages() == []
        assert connection.fd == -1

    connection = RelayConnection("/data", "abc", ["http://127.0.0.1:8900"], "/home/me", connect)
    for at_s in (1000.0, 1000.1):
        assert connection.ensure(at_s), "no delay after the first death"
        dies()
    assert not connection.ensure(1000.2), "but after the second"
    assert connection.ensure(1002.0)
    dies()
    assert not connection.ensure(1003.0)
    assert connection.ensure(1004.0)
    dies()
    assert connection.ensure(1010.0)
    assert not connection.ensure(1100.0), "it is still running"
    dies()
    assert connection.ensure(1100.1)
    connection.close()
    relay_ends.pop().close()


def test_a_long_message_is_sent_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_LONG", "x" * 1_000_000)
    listener = address(str(tmp_path)).listen()
    assert listener is not None
    connection = RelayConnection(str(tmp_path), "abc", ["mlflow:http://host"], "/")
    assert connection.ensure(0.0)
    with socket.socket(fileno=listener.detach()) as listening:
        relay, _ = listening.accept()
    received = b""
    while b"\n" not in received:
        received += relay.recv(65536)
        connection.ensure(1.0)  # at the next tick
    assert json.loads(received)["environ"]["MLFLOW_LONG"] == "x" * 1_000_000
    relay.close()
    connection.close()
