"""`runvitals` in a process of its own, forked from one that has imported the server: servers then start with
a tenth of the CPU. To test how Python starts, run `python -m runvitals` instead.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import IO, NoReturn
from unittest import mock

_PRELOADED = ["tests.patient_servers", "tests.preloaded_server"]
_ROOT = Path(__file__).parents[1]


class ForkedProcess:
    """A function that runs, with pipes for its output; the methods are those of `subprocess.Popen`.

    Args:
        work: is called; its result is the exit code.
        arguments: of the function.
        env: the environment.
    """

    def __init__(
        self, work: Callable[..., int | None], arguments: Sequence[str], env: Mapping[str, str]
    ) -> None:
        self.args = [work.__name__, *arguments]
        (out, its_out), (err, its_err) = multiprocessing.Pipe(False), multiprocessing.Pipe(False)
        self._process = _context().Process(
            target=_run, args=(work, arguments, dict(env), os.getcwd(), its_out, its_err), daemon=True
        )
        self._process.start()
        for end in (its_out, its_err):
            end.close()
        self.stdout, self.stderr = _text(out), _text(err)
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        texts = ["", ""]

        def read(number: int, pipe: IO[str]) -> None:
            with pipe:
                texts[number] = pipe.read()

        pipes = [(number, pipe) for number, pipe in enumerate((self.stdout, self.stderr)) if not pipe.closed]
        readers = [threading.Thread(target=read, args=pair, daemon=True) for pair in pipes]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return texts[0], texts[1]

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedCommand(ForkedProcess):
    """A command that runs.

    Args:
        arguments: of `runvitals`.
        env: its environment; None: that of the tests.
    """

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        super().__init__(_command, arguments, os.environ if env is None else env)
        self.args = ["runvitals", *arguments]


def _command(*arguments: str) -> int | None:
    sys.argv = ["runvitals", *arguments]
    from runvitals.cli import main

    return main()


def _text(end: Connection) -> IO[str]:
    with end:
        return os.fdopen(os.dup(end.fileno()))


@cache
def _context() -> ForkServerContext:
    """Starts the process that is forked, outside of the folder and the environment of the present test."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    before = os.getcwd()
    os.chdir(_ROOT)
    try:
        with mock.patch.dict(os.environ, {"PATH": os.defpath}, clear=True):
            multiprocessing.resource_tracker.ensure_running()
            multiprocessing.forkserver.ensure_running()
    finally:
        os.chdir(before)
    return context


def _run(
    work: Callable[..., int | None],
    arguments: Sequence[str],
    environ: dict[str, str],
    cwd: str,
    out: Connection,
    err: Connection,
) -> NoReturn:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    for number, end in ((1, out), (2, err)):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.exit(work(*arguments))
