"""Other users of the machine reach the page, and change nothing."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.readers.journals.runs import RunList
from runvitals.server.http.own_user import user_of_connection
from runvitals.server.http.serve import Server, listen
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Monitor

_OTHER = 65534


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    Monitor(tmp_path)
    listener = listen(0)
    server = Server(create_app(str(tmp_path)))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)


def send(connection: socket.socket, who: str) -> bytes:
    body = json.dumps({"name": f"by {who}"}).encode()
    head = b"PATCH /api/v1/runs/abc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_the_user_of_a_connection_is_found() -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as listener:
            listener.bind((host, 0))
            listener.listen()
            with socket.create_connection((host, listener.getsockname()[1])) as client:
                ends = client.getsockname()[:2], client.getpeername()[:2]
                assert user_of_connection(*ends) == os.getuid()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        ends = ("127.0.0.1", client.getsockname()[1]), listener.getsockname()
        assert user_of_connection(*ends) == os.getuid()
    assert user_of_connection(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert user_of_connection(None, ("127.0.0.1", 2)) is None


def name(directory: Path) -> str:
    run = RunList(str(directory)).run("abc", T0)
    assert run is not None
    return run.name


def test_the_own_user_changes_runs(port: int, tmp_path: Path) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        assert b" 200 " in send(connection, "me").partition(b"\r\n")[0]
    assert name(tmp_path) == "by me"


@pytest.mark.skipif(os.getuid() != 0, reason="this machine lets only root become another user")
def test_another_user_changes_nothing(port: int, tmp_path: Path) -> None:
    os.seteuid(_OTHER)
    try:
        connection = socket.create_connection(("127.0.0.1", port))
    finally:
        os.seteuid(0)
    with connection:
        answer = send(connection, "another")
    assert b" 403 " in answer.partition(b"\r\n")[0]
    assert f"the uid 0 and not {_OTHER}".encode() in answer
    assert name(tmp_path) == "abc"
