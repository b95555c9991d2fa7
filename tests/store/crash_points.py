"""Interrupts an operation at each of its steps, in forked processes, and looks at what is left.

A step is whatever may change a disk or a database: a statement of SQLite or PostgreSQL that writes, a request
to ClickHouse, a file that is opened for writing, renamed, removed or synced. Statements of a transaction that
follow each other and do the same with the same table are one step. At step n the process is killed
(`kill`), or from step n on the disk is full (`full`). n grows until the operation ends before it.

If all that is left is in a folder, the operation runs once: what `kill` would leave is copied at each step.
That takes a third of the CPU.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import itertools
import os
import re
import shutil
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NoReturn, TextIO

import psycopg.errors
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from runvitals.store.errors import MetadataStoreError
from tests.patience import PATIENCE_S

Step = Callable[..., None]
_CHANGES_NOTHING = re.compile(
    r"\s*(--|SELECT (?!setval|pg_notify)|BEGIN|ROLLBACK|SAVEPOINT|RELEASE|SET LOCAL"
    r"|PRAGMA (?!((journal_mode|user_version|application_id) ?=|incremental_vacuum|wal_checkpoint)))"
)
_WRITES = os.O_WRONLY | os.O_RDWR
_FILE_EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.copyfile"}
_ENDED, _REFUSED, _FAILED, _WENT_ON = 0, 3, 1, 4
_LIBC, _MS_REMOUNT = ctypes.CDLL(None, use_errno=True), 32


@dataclass
class Outcome:
    """The result of each step.

    Args:
        steps: what was to be done at each of them.
        failures: what was wrong afterwards.
    """

    steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def interrupted(
    how: str,
    work: str,
    renew: Callable[[], None],
    operate: Callable[[Callable[[int], None]], None],
    verify: Callable[[list[int]], None],
    databases: Callable[[], str] | None = None,
) -> Outcome:
    """Interrupt an operation at each of its steps.

    Args:
        how: "kill" or "full".
        work: the folder that the operation changes; that around it is the disk that becomes full, a tmpfs.
        renew: makes what there is before the operation.
        operate: the operation; it calls its argument with the number of what it acknowledges.
        verify: raises an error if what is left is wrong; it gets the numbers that were acknowledged. It is
            called in another process, once for all that is left alike.
        databases: a text that differs if what is left elsewhere than in the folder does; None: nothing is.
    """
    with _verifier(verify) as verified:
        if how == "kill" and databases is None:
            return _stopped_at_each_step(work, renew, operate, verified)
        outcome, seen = Outcome(), set[tuple[str, ...]]()
        for at in itertools.count(1):
            renew()
            acknowledged, step, status = _interrupted_at(at, how, work, operate)
            if status == _ENDED:
                return outcome
            outcome.steps.append(step)
            if status not in ((-signal.SIGKILL,) if how == "kill" else (_REFUSED, _WENT_ON)):
                outcome.failures.append(f"step {at}, {step}: the operation ended with {status}")
                continue
            left = (_digest(work), databases() if databases else "", repr(acknowledged))
            if left not in seen and not verified(acknowledged):
                outcome.failures.append(f"step {at}, {step}: see the output of the process")
            seen.add(left)
    raise AssertionError("unreachable")


def _stopped_at_each_step(
    work: str,
    renew: Callable[[], None],
    operate: Callable[[Callable[[int], None]], None],
    verified: Callable[[list[int]], bool],
) -> Outcome:
    """Run the operation once. At each step its process is stopped, and the folder is copied: that is what
    would be left if it was killed there."""
    outcome, acknowledged = Outcome(), list[int]()
    left: dict[tuple[str, ...], tuple[str, str, list[int]]] = {}
    renew()

    def work_on(report: Callable[[str], None]) -> None:
        last = ""

        def step(what: str, kind: str = "") -> None:
            nonlocal last
            last, previous = kind, last
            if not (kind and kind == previous):
                report(f"step {what}")
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

        with _watched(step):
            operate(lambda number: report(f"acknowledged {number}"))

    pid, lines = _forked(work_on)
    with lines:
        for line in lines:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "acknowledged":
                acknowledged.append(int(rest))
                continue
            if not os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]):
                raise AssertionError(f"the operation ended at {rest}")
            outcome.steps.append(rest)
            state = (_digest(work), repr(acknowledged))
            if state not in left:
                copy = f"{work}.{len(outcome.steps)}"
                shutil.copytree(work, copy)
                left[state] = copy, rest, list(acknowledged)
            os.kill(pid, signal.SIGCONT)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != _ENDED:
        outcome.failures.append(f"the operation ended with {status}")
    for copy, step, numbers in left.values():
        shutil.rmtree(work)
        os.rename(copy, work)
        if not verified(numbers):
            outcome.failures.append(f"step {step}: see the output of the process")
    return outcome


@contextmanager
def _verifier(verify: Callable[[list[int]], None]) -> Iterator[Callable[[list[int]], bool]]:
    """A fork of this process that verifies what is left, whenever it is asked to."""
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        gc.freeze()
        gc.enable()
        try:
            while True:
                acknowledged = theirs.recv()
                signal.alarm(int(PATIENCE_S))
                try:
                    verify(acknowledged)
                    right = True
                except Exception:  # noqa: BLE001 - it is a failure of the test
                    traceback.print_exc()
                    right = False
                theirs.send(right)
        finally:
            sys.stderr.flush()
            os._exit(_ENDED)
    theirs.close()

    def verified(acknowledged: list[int]) -> bool:
        ours.send(acknowledged)
        return bool(ours.recv())

    with ours:
        yield verified
    os.waitpid(pid, 0)


def _digest(folder: str) -> str:
    """Return the contents of a folder, without SQLite's indexes of write-ahead logs and process numbers."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and not path.name.endswith(("-shm", ".lock")):
            digest.update(f"{path}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _interrupted_at(
    at: int,
    how: str,
    work: str,
    operate: Callable[[Callable[[int], None]], None],
) -> tuple[list[int], str, int]:
    """Interrupt the operation at a step. Returns what it acknowledged, the step, and how it ended."""
    disk = os.path.dirname(work)
    blocks = os.statvfs(disk).f_blocks

    def work_on(report: Callable[[str], None]) -> int:
        numbers = itertools.count(1)
        is_full, last = False, ""

        def step(what: str, kind: str = "") -> None:
            nonlocal is_full, last
            last, previous = kind, last
            if not (kind and kind == previous) and next(numbers) == at:
                report(f"step {what}")
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                is_full = True
                state = os.statvfs(disk)
                _resize(disk, max(1, state.f_blocks - state.f_bfree))
            if is_full and what.startswith("PostgreSQL"):
                raise OperationalError(what, {}, psycopg.errors.DiskFull("No space left on device"))

        with _watched(step):
            operate(lambda number: report(f"acknowledged {number}"))
        return _WENT_ON if is_full else _ENDED

    pid, file = _forked(work_on)
    with file:
        lines = file.read().splitlines()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if how == "full":
        _resize(disk, blocks)
    acknowledged = [int(line.split()[1]) for line in lines if line.startswith("acknowledged ")]
    steps = [line.removeprefix("step ") for line in lines if line.startswith("step ")]
    return acknowledged, "".join(steps), status


def _forked(work: Callable[[Callable[[str], None]], int | None]) -> tuple[int, TextIO]:
    """Run `work` in a fork of this process. Returns its number, and the lines that it reports."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run(work, lambda line: os.write(writing, f"{line}\n".encode()))
    os.close(writing)
    return pid, open(reading, encoding="utf-8")


def _run(work: Callable[[Callable[[str], None]], int | None], report: Callable[[str], object]) -> NoReturn:
    signal.alarm(int(PATIENCE_S))
    status = _FAILED
    try:
        status = work(lambda line: report(line.replace("\n", " ")) and None) or _ENDED
    except (OSError, MetadataStoreError, ValueError) as error:  # what a command tells its user
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        status = _REFUSED
    except BaseException:  # noqa: BLE001 - the process ends
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


@contextmanager
def _watched(step: Step) -> Iterator[None]:
    """Call `step` before each step of this process. There is no way to stop that: fork before."""

    def statement(connection: sqlite3.Connection, sql: str) -> None:
        if not _CHANGES_NOTHING.match(sql):
            step(f"SQLite: {sql.strip()[:100]}", _kind(sql) if connection.in_transaction else "")

    def audit(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "http.client.send":
            step("HTTP request")
        elif name == "os.mkdir" and os.path.isdir(arguments[0]):
            return
        elif name in _FILE_EVENTS or (name == "open" and arguments[2] & _WRITES):
            step(f"{name} {arguments[0]}")

    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = really_connect(*arguments, **named)
        connection.set_trace_callback(partial(statement, connection))
        return connection

    def sync(descriptor: int) -> None:
        step("os.fsync")
        really_sync(descriptor)

    def execute(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
        if connection.dialect.name == "postgresql" and not _CHANGES_NOTHING.match(sql):
            step(f"PostgreSQL: {sql.strip()[:100]}", _kind(sql))

    def commit(connection: Any) -> None:
        if connection.dialect.name == "postgresql":
            step("PostgreSQL: COMMIT")

    really_sync, os.fsync = os.fsync, sync
    really_connect = sqlite3.connect
    sqlite3.connect = sqlite3.dbapi2.connect = connect
    event.listen(Engine, "before_cursor_execute", execute)
    event.listen(Engine, "commit", commit)
    sys.addaudithook(audit)
    yield


def _kind(sql: str) -> str:
    """Return what a statement does, and with which table; that of a new table is not told."""
    words = sql.split()
    return "CREATE" if words[0] == "CREATE" else " ".join(words[:3])


def _resize(disk: str, blocks: int) -> None:
    """Let a disk have that many blocks: with as many as are used, it is full. Filling it takes 7 ms."""
    size = f"size={blocks * os.statvfs(disk).f_frsize}".encode()
    if _LIBC.mount(b"none", os.fsencode(disk), b"tmpfs", _MS_REMOUNT, size) != 0:
        raise OSError(ctypes.get_errno(), "the disk cannot be resized", disk)
