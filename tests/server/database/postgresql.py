"""A private PostgreSQL server, from PATH or Debian's package. It stops when a given process ends."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import psycopg

from tests.patience import PATIENCE_S

_OWNER = "postgres"  # initdb and the server refuse to run as root; Debian's package creates this user
_MEMORY = "/dev/shm"
_ROOM_BYTES = 8_000_000_000
# Runs a server in the background until another process has ended, then removes its folder.
_WATCH = """
pid=$1 folder=$2
shift 2
{
    "$@" &
    while kill -0 "$pid" && kill -0 $!; do sleep 0.5; done 2>/dev/null
    kill -INT $! 2>/dev/null
    wait $!
    rm -rf "$folder" "$folder.lock"
} &
"""


def programs() -> str | None:
    """The folder of initdb and postgres; None if they are not installed."""
    initdb = shutil.which("initdb")
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if initdb is None and folders:
        initdb = f"{folders[-1]}/initdb"
    return os.path.dirname(os.path.realpath(initdb)) if initdb else None


class Server:
    """A server on a socket in its own folder. When its owner has ended, it stops and the folder is removed.

    Args:
        folder: the folder, in which the server may already be running.
        owner_pid: the process that the server stops after.
        durable: whether it waits for the disk.
    """

    def __init__(self, folder: str, owner_pid: int, durable: bool = False) -> None:
        self.folder = folder
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.isdir(folder):
                _start(folder, owner_pid, durable)

    def address(self, database: str) -> str:
        return f"postgresql://{_OWNER}@/{database}?host={self.folder}"

    def make(self, database: str, template: str = "template1") -> str:
        """The address of a new database."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            # Without waiting for a disk, copies of files take two thirds of the CPU of a log of all pages.
            strategy = " STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"{strategy}')
        return self.address(database)

    def renew(self, database: str, template: str) -> None:
        """Put a copy of another database in the place of one."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        self.make(database, template)


class KillableServer(Server):
    """A durable server that can be killed and started again on the same data. `stop` removes it."""

    def __init__(self) -> None:
        self.folder = tempfile.mktemp(prefix="runvitals-postgresql-", dir=_parent())
        self._command = _initialise(self.folder, durable=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it. What is left of one that was killed may hold its memory for a moment longer."""
        deadline = time.monotonic() + PATIENCE_S
        with open(f"{self.folder}/log", "w+b") as log:
            while True:
                self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd="/")
                while self._process.poll() is None:
                    try:
                        psycopg.connect(self.address("postgres")).close()
                        return
                    except psycopg.OperationalError:
                        time.sleep(0.05)
                log.seek(0)
                assert time.monotonic() < deadline, log.read().decode()

    def kill(self) -> None:
        """As kill -9; its other processes end when they notice."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It accepts connections, and answers nothing."""
        assert self._process is not None
        processes = [self._process.pid, *_children(self._process.pid)]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(child) for child in children.read().split()]


def _initialise(folder: str, durable: bool) -> list[str]:
    """Make the data of a server. Returns the command that runs it."""
    bin_folder = programs()
    assert bin_folder is not None, "PostgreSQL is not installed"
    os.mkdir(folder, 0o700)
    become: list[str] = []
    if os.getuid() == 0:
        shutil.chown(folder, _OWNER)
        become = ["setpriv", f"--reuid={_OWNER}", f"--regid={_OWNER}", "--init-groups"]
    data = f"{folder}/data"
    initdb = [f"{bin_folder}/initdb", "-D", data, "-U", _OWNER, "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run([*become, *initdb, "--locale=C.UTF-8"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    settings = {"listen_addresses": "", "unix_socket_directories": folder, "max_connections": "200"}
    if not durable:
        settings |= {"fsync": "off", "full_page_writes": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [*become, f"{bin_folder}/postgres", "-D", data, *options]


def _start(folder: str, owner_pid: int, durable: bool) -> None:
    command = _initialise(folder, durable)
    watch = ["sh", "-c", _WATCH, "watch", str(owner_pid), folder]
    with open(f"{folder}/log", "w+b") as log:
        subprocess.run(
            [*watch, *command],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
        _wait(folder, log)


def _wait(folder: str, log: BinaryIO) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            psycopg.connect(f"postgresql://{_OWNER}@/postgres?host={folder}").close()
            return
        except psycopg.OperationalError:
            if not os.path.isdir(folder) or time.monotonic() > deadline:
                log.seek(0)
                raise RuntimeError(f"PostgreSQL did not start: {log.read().decode()}") from None
            time.sleep(0.05)


def temporary_server(durable: bool = False) -> Server:
    """A server that ends with this process."""
    return Server(tempfile.mktemp(prefix="runvitals-postgresql-", dir=_parent()), os.getpid(), durable)


def shared_server(session: str) -> Server:
    """One server for all processes of a test session."""
    owner_pid = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return Server(f"{_parent()}/runvitals-tests-{session[:12]}", owner_pid)


def _parent() -> str:
    """The folder for those of servers: in memory if there is room, that makes databases quickly."""
    if os.path.isdir(_MEMORY) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
        return _MEMORY
    return tempfile.gettempdir()
