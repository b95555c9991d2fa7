"""The address of a monitor or relay, also when another user has bound the name before."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runvitals.monitoring.monitor.socket_address import SocketAddress
from tests.monitoring.monitor.strangers import stranger_on
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract socket names")


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SocketAddress:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return SocketAddress(f"test-{os.getpid()}", str(tmp_path))


def close(*socks: object) -> None:
    for sock in socks:
        assert sock is not None
        sock.close()  # type: ignore[attr-defined]


def test_connecting_fails_until_a_process_listens(address: SocketAddress) -> None:
    assert address.connect() is None
    listener = address.listen()
    assert listener is not None
    connection = address.connect()
    assert connection is not None
    assert address.listen() is None  # another process of our user was first
    close(listener, connection)
    assert address.connect() is None


@pytest.mark.parametrize("queue", ["listens", "does not listen", "has a full queue"])
def test_another_user_who_has_bound_the_name_receives_nothing(
    address: SocketAddress, tmp_path: Path, queue: str
) -> None:
    assert address.name is not None
    with stranger_on(address.name, queue) as received:
        assert address.connect() is None
        listener = address.listen()
        connection = address.connect()
        assert listener is not None
        assert connection is not None
        connection.sendall(b"hello")
        with socket.socket(fileno=os.dup(listener.fileno())) as listening:
            ours, _ = listening.accept()
        assert ours.recv(100) == b"hello"
        assert address.listen() is None
        assert received() == b""
    # After the other user's process has gone, the listener is still found.
    late = address.connect()
    folder = tmp_path / f"sockets-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    close(listener, connection, late, ours)


def test_stale_sockets_are_removed(address: SocketAddress, tmp_path: Path) -> None:
    assert address.name is not None
    folder = tmp_path / f"sockets-{os.geteuid()}"
    with stranger_on(address.name, "listens"):
        close(address.listen())
        assert address.connect() is None
        other = SocketAddress("other", str(tmp_path))
        with stranger_on(str(other.name), "listens"):
            listener = other.listen()
            assert len(list(folder.iterdir())) == 1
            again = address.listen()
            assert len(list(folder.iterdir())) == 2
            close(listener, again)


def test_a_folder_that_other_users_can_enter_is_not_used(
    address: SocketAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert address.name is not None
    (tmp_path / f"sockets-{os.geteuid()}").mkdir()
    (tmp_path / f"sockets-{os.geteuid()}").chmod(0o755)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    with stranger_on(address.name, "listens"):
        with pytest.raises(OSError, match=r"another user of this host.*only this user can enter"):
            address.listen()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        listener, connection = address.listen(), address.connect()
        close(listener, connection)
    assert [entry.name for entry in runtime.iterdir()] == ["runvitals"]


def test_a_long_path_and_a_default_timeout(tmp_path: Path, default_timeout: Callable[[float], None]) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    address = SocketAddress("x" * 60, str(folder))
    default_timeout(0.001)
    with stranger_on(str(address.name), "listens"):
        listener, connection = address.listen(), address.connect()
        close(listener, connection)


@pytest.fixture
def default_timeout() -> Iterator[Callable[[float], None]]:
    yield socket.setdefaulttimeout
    socket.setdefaulttimeout(None)


def test_connections_of_other_users_are_rejected(address: SocketAddress) -> None:
    from runvitals.monitoring.monitor.clients import Listener
    from tests.monitoring.monitor.strangers import as_stranger

    listening = address.listen()
    assert listening is not None
    listener = Listener(listening.detach())
    name = address.name

    @contextmanager
    def connecting() -> Iterator[int]:
        with as_stranger(lambda: connect_and_read(str(name))) as output:
            yield output

    with connecting() as output:
        while not select.select([listener.fd], [], [], 0)[0]:
            select.select([output], [], [], 0.01)
        assert listener.accept() is None
        assert os.read(output, 10) == b"closed"
    listener.close()


def connect_and_read(name: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect(name)
        return b"closed" if sock.recv(1) == b"" else b"data"
