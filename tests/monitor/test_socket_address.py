"""Where a monitor or relay is found, with other users of the host who got there first."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runvitals.monitor.socket_address import SocketAddress
from tests.monitor.strangers import stranger_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract socket names are Linux's")


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SocketAddress:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return SocketAddress(f"test-{os.getpid()}", str(tmp_path))


def closed(*socks: object) -> None:
    for sock in socks:
        assert sock is not None
        sock.close()  # type: ignore[attr-defined]


def test_nobody_is_there_until_somebody_binds(address: SocketAddress) -> None:
    assert address.connect() is None
    door = address.listen()
    assert door is not None
    line = address.connect()
    assert line is not None
    assert address.listen() is None  # another process of ours was first
    closed(door, line)
    assert address.connect() is None


@pytest.mark.parametrize("queue", ["listens", "does not listen", "has a full queue"])
def test_a_stranger_who_holds_the_name_is_told_nothing(
    address: SocketAddress, tmp_path: Path, queue: str
) -> None:
    assert address.name is not None
    with stranger_on(address.name, queue) as heard:
        assert address.connect() is None
        door = address.listen()
        line = address.connect()
        assert door is not None
        assert line is not None
        line.sendall(b"hello")
        with socket.socket(fileno=os.dup(door.fileno())) as listening:
            ours, _ = listening.accept()
        assert ours.recv(100) == b"hello"
        assert address.listen() is None
        assert heard() == b""
    # The stranger has gone; whoever comes now still finds the one that began meanwhile.
    late = address.connect()
    folder = tmp_path / f"sockets-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    closed(door, line, late, ours)


def test_sockets_of_the_dead_are_removed(address: SocketAddress, tmp_path: Path) -> None:
    assert address.name is not None
    folder = tmp_path / f"sockets-{os.geteuid()}"
    with stranger_on(address.name, "listens"):
        closed(address.listen())
        assert address.connect() is None
        other = SocketAddress("other", str(tmp_path))
        with stranger_on(str(other.name), "listens"):
            door = other.listen()
            assert len(list(folder.iterdir())) == 1
            again = address.listen()
            assert len(list(folder.iterdir())) == 2
            closed(door, again)


def test_a_folder_that_others_can_enter_is_not_used(
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
        door, line = address.listen(), address.connect()
        closed(door, line)
    assert [entry.name for entry in runtime.iterdir()] == ["runvitals"]


def test_a_long_path_and_a_default_timeout_are_no_hindrance(
    tmp_path: Path, default_timeout: Callable[[float], None]
) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    address = SocketAddress("x" * 60, str(folder))
    default_timeout(0.001)
    with stranger_on(str(address.name), "listens"):
        door, line = address.listen(), address.connect()
        closed(door, line)


@pytest.fixture
def default_timeout() -> Iterator[Callable[[float], None]]:
    yield socket.setdefaulttimeout
    socket.setdefaulttimeout(None)


def test_strangers_who_knock_are_not_let_in(address: SocketAddress) -> None:
    from runvitals.monitor.clients import Listener
    from tests.monitor.strangers import as_stranger

    listening = address.listen()
    assert listening is not None
    door = Listener(listening.detach())
    name = address.name

    @contextmanager
    def knocking() -> Iterator[int]:
        with as_stranger(lambda: knock(str(name))) as output:
            yield output

    with knocking() as output:
        while not select.select([door.fd], [], [], 0)[0]:
            select.select([output], [], [], 0.01)
        assert door.accept() is None
        assert os.read(output, 10) == b"closed"
    door.close()


def knock(name: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(15)
        sock.connect(name)
        return b"closed" if sock.recv(1) == b"" else b"heard"
