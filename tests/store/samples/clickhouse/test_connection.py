"""Connections to ClickHouse: which are kept, and which are closed."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from runvitals.store.samples.clickhouse import ClickHouseAddress
from runvitals.store.samples.clickhouse.connection import ClickHouse
from tests.patience import PATIENCE_S


def test_closing_also_closes_the_connection_of_a_request_in_flight() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as requests:
        clickhouse = ClickHouse(ClickHouseAddress("127.0.0.1", listener.getsockname()[1]))
        pending = requests.submit(clickhouse.command, "SELECT 1")
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            request = connection.recv(65536)
            while b"SELECT 1" not in request:
                request += connection.recv(65536)
            clickhouse.close()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1\n")
            assert pending.result(PATIENCE_S) == "1"
            assert connection.recv(1) == b"", "the connection is still open"
