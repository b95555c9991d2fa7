"""How the monitor and the relay are started: in the background. Both outlive whoever starts them, and nobody
waits for them.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# `sh` starts the program in the background and ends: it is nobody's child, so the trainer's `os.wait()`
# never sees it, and forking the (possibly huge) trainer twice is not needed. An asynchronous command of `sh`
# ignores INT and QUIT from its first moment.
_IN_BACKGROUND = '"$0" "$@" &'


_LONG_VARIABLE = 4096  # letters


def start(
    command: Sequence[str], file_actions: Sequence[tuple[Any, ...]], environ: Mapping[str, str]
) -> None:
    """Start a program in a session of its own; 1 to 2 ms.

    Args:
        command: the program's absolute path and its arguments.
        file_actions: as of `os.posix_spawn`.

    Raises:
        OSError: it cannot be started.
    """
    shell = ["/bin/sh", "-c", _IN_BACKGROUND, *command]
    # Before the shell begins, which complains of a working folder that was deleted.
    silence: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    actions = [*silence, *file_actions]
    try:
        pid = _spawn(shell, actions, environ)
    except OSError as error:
        if error.errno != errno.E2BIG:
            raise
        # A script may set variables that no program can be started with.
        short = {name: text for name, text in environ.items() if len(text) <= _LONG_VARIABLE}
        pid = _spawn(shell, actions, short)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # SIGCHLD is ignored in this process: the shell is already reaped


def _spawn(shell: list[str], file_actions: Sequence[tuple[Any, ...]], environ: Mapping[str, str]) -> int:
    try:
        return os.posix_spawn(shell[0], shell, environ, file_actions=file_actions, setsid=True)
    except NotImplementedError:  # a C library whose posix_spawn cannot make a session
        return os.posix_spawn("/usr/bin/env", ["env", "setsid", *shell], environ, file_actions=file_actions)
