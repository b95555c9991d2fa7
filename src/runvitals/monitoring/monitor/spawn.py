"""Starts the monitor and the relay in the background.

Both outlive the process that starts them, which does not wait for them.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# `sh` starts the program in the background and exits. So the program is not a child of the trainer, whose
# `os.wait()` never returns it, and the possibly huge trainer need not fork twice. A background command of
# `sh` ignores INT and QUIT from the start.
_IN_BACKGROUND = '"$0" "$@" &'
_LONG_VARIABLE = 4096  # characters


def start(
    command: Sequence[str], file_actions: Sequence[tuple[Any, ...]], environ: Mapping[str, str]
) -> None:
    """Start a program in a new session; 1 to 2 ms.

    Args:
        command: the program's absolute path and its arguments.
        file_actions: as for `os.posix_spawn`.
        environ: its environment.

    Raises:
        OSError: it could not be started.
    """
    shell = ["/bin/sh", "-c", _IN_BACKGROUND, *command]
    # Redirected before the shell starts, because it prints an error if the working directory was deleted.
    redirect: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    actions = [*redirect, *file_actions]
    try:
        pid = _spawn(shell, actions, environ)
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        # The script has set environment variables that are too large to start any program with.
        short = {name: text for name, text in environ.items() if len(text) <= _LONG_VARIABLE}
        pid = _spawn(shell, actions, short)
    from posix import waitpid  # gevent replaces the one of `os`, and waits for a signal that has come before

    try:
        waitpid(pid, 0)
    except ChildProcessError:
        pass  # this process ignores SIGCHLD, so the kernel has reaped the shell


def _spawn(shell: list[str], file_actions: Sequence[tuple[Any, ...]], environ: Mapping[str, str]) -> int:
    try:
        return os.posix_spawn(shell[0], shell, environ, file_actions=file_actions, setsid=True)
    except NotImplementedError:  # a C library whose posix_spawn cannot create a session
        return os.posix_spawn("/usr/bin/env", ["env", "setsid", *shell], environ, file_actions=file_actions)
