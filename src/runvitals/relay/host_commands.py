"""`HostCommands`: commands that a server may have run on this host, if its user registered them.

The user's file `commands.toml`, in the folder of the user's settings, lists them by name:

    [commands]
    drain = ["/usr/local/bin/drain-node", "--reason", "runvitals"]

A server sends a name and nothing else, never a command or an argument. Project files register none: they come
with repositories. The environment of a command has `RUNVITALS_RUN`, the id of the run that it is about.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from stat import S_IWGRP, S_IWOTH
from typing import Final

from runvitals.base.private_folders import config_dir
from runvitals.base.terminal_text import inert
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.settings.settings_files import parse, read

FILE: Final = "commands.toml"
TIMEOUT_S: Final = 60.0
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_MAX_OUTPUT: Final = 500
_CHUNK_BYTES: Final = 8192
_POLL_S: Final = 0.2
_MAX_AT_ONCE: Final = 4
_KEPT: Final = ("PATH", "HOME", "LANG", "USER", "LOGNAME", "TZ")

Report = Callable[[str, str], None]
"""Called with the id of a run and what came of a command."""


class HostCommands:
    """Runs each requested command once, in a thread of its own.

    Args:
        environ: where the user's settings are.
        report: what came of a command.
        timeout_s: how long a command may run.
    """

    def __init__(self, environ: Mapping[str, str], report: Report, timeout_s: float = TIMEOUT_S) -> None:
        self._environ = environ
        self._timeout_s = timeout_s
        self._report = report
        self._room = threading.BoundedSemaphore(_MAX_AT_ONCE)

    def request(self, folder: str, run_id: str, number: int, name: str) -> None:
        """Run a command for a run, unless it was run for this request already.

        Args:
            folder: of the run; a file in it says that the command was begun.
            number: of the request.
        """
        if not _is_first(folder, number):
            return
        threading.Thread(
            target=self._run, args=(run_id, number, name), name="runvitals-command", daemon=True
        ).start()

    def _run(self, run_id: str, number: int, name: str) -> None:
        try:
            with self._room:
                outcome = self._outcome(run_id, registered_command(name, self._environ))
        except (ValueError, OSError) as error:
            outcome = f"was not run: {error}"
        self._report(run_id, f"command {number} ({name[:64]}) {redaction.text(inert(outcome))}")

    def _outcome(self, run_id: str, command: list[str]) -> str:
        environment = {name: self._environ[name] for name in _KEPT if name in self._environ}
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, "RUNVITALS_RUN": run_id},
            cwd=os.path.expanduser("~"),
            start_new_session=True,
        ) as process:
            output = _last_output(process, self._timeout_s)
            status = process.poll()
            if status is None:
                # Its children too: they have its session.
                os.killpg(process.pid, signal.SIGKILL)
                return f"was ended after {self._timeout_s:g} s"
        text = " ".join(output.decode("utf-8", "replace").split())[-_MAX_OUTPUT:]
        return f"ended with status {status}" + (f": {text}" if text else "")


def _last_output(process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
    """Return the last output of a process, which has ended or has run for too long when this returns."""
    assert process.stdout is not None
    file = process.stdout.fileno()
    readable = select.poll()
    readable.register(file, select.POLLIN | select.POLLHUP)
    until_s = time.monotonic() + timeout_s
    output = b""
    # A child may keep the pipe open after the process has ended.
    while process.poll() is None or readable.poll(0):
        remaining_s = until_s - time.monotonic()
        if remaining_s <= 0:
            break
        if not readable.poll(min(remaining_s, _POLL_S) * 1000):
            continue
        chunk = os.read(file, _CHUNK_BYTES)
        if not chunk:
            try:
                process.wait(remaining_s)
            except subprocess.TimeoutExpired:
                pass  # the caller ends it
            break
        output = (output + chunk)[-_CHUNK_BYTES:]
    return output


def registered_command(name: str, environ: Mapping[str, str]) -> list[str]:
    """Return the command that the user registered by this name.

    Raises:
        ValueError: there is none, or the file cannot be used.
    """
    path = os.path.join(config_dir(environ), FILE)
    if not _NAME.fullmatch(name):
        raise ValueError("invalid name of a command")
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise ValueError(f"this host has registered no commands in {path}") from None
    if status.st_uid != os.getuid() or status.st_mode & (S_IWGRP | S_IWOTH):
        raise ValueError(f"{path} can be written by other users")
    commands = parse(path, read(path)).get("commands")
    command = commands.get(name) if isinstance(commands, dict) else None
    if command is None:
        raise ValueError(f"no command of this name in {path}")
    if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
        raise ValueError(f"{path}: expected {name} as a list of texts, the program first")
    if not os.path.isabs(command[0]):
        raise ValueError(f"{path}: expected the whole path of the program of {name}")
    return command


def _is_first(folder: str, number: int) -> bool:
    """Return whether the command of a request was not begun yet, also by a relay before this one."""
    path = os.path.join(folder, "relay")
    try:
        os.makedirs(path, exist_ok=True)
        os.close(os.open(os.path.join(path, f"command-{int(number)}"), os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False  # begun, or nothing can be noted: better not run than run twice
    return True
