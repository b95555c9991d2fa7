"""Requests with a foreign Host header are rejected (DNS rebinding)."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator

import pytest

from runvitals.relay.destinations.prometheus.destination import Exporter, read_address, read_names
from tests.patience import PATIENCE_S


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    exporter = Exporter(("127.0.0.1", 0))
    yield exporter
    exporter.close()


def status(exporter: Exporter, host: str | None, path: str = "/metrics") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=PATIENCE_S)
    connection.putrequest("GET", path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert b"\x1b" not in body
    return response.status


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:9401",
        "localhost",
        "LOCALHOST:9401",
        "[::1]:9401",
        "10.1.2.3",
        socket.gethostname(),
        None,
    ],
)
def test_accepts_names_of_this_host(exporter: Exporter, host: str | None) -> None:
    assert status(exporter, host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9401", "localhost.evil.example", "127.0.0.1.evil.example",
     "evil@localhost.x", "", "[::1", "a\x1b[31m", "0x7f.1"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/metrics", "/"])
def test_rejects_other_names(exporter: Exporter, host: str, path: str) -> None:
    assert status(exporter, host, path) == 403


def test_accepts_configured_names(exporter: Exporter) -> None:
    address = "0.0.0.0:9401#hosts=Node1.example.org, metrics.example.org"
    assert read_address(address) == ("0.0.0.0", 9401)
    exporter.add_names(read_names(address))
    assert status(exporter, "node1.example.org:9401") == 200
    assert status(exporter, "metrics.example.org.") == 200
    with pytest.raises(ValueError, match="unknown option 'host'"):
        read_names("9401#host=x")
