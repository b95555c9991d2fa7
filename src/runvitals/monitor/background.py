"""What the monitor and the relay have in common: an address on this host, and a start in the background.

Both outlive whoever starts them, and nobody waits for them.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# `sh` starts the program in the background and ends: it is nobody's child, so the trainer's `os.wait()`
# never sees it, and forking the (possibly huge) trainer twice is not needed. An asynchronous command of `sh`
# ignores INT and QUIT from its first moment.
_IN_BACKGROUND = 'exec 0</dev/null >/dev/null 2>&1; "$0" "$@" &'
_LONGEST_FILE_NAME = 40  # of a socket: its whole path has 104 bytes on macOS


def address(part: str) -> str:
    """The name of a UNIX socket: abstract on Linux (begins with NUL), a file in a private folder elsewhere.

    User and PID namespace are part of it, since abstract names belong to the network namespace, which
    containers may share.

    Args:
        part: what tells the sockets of one user from each other.
    """
    if sys.platform == "linux":
        try:
            namespace = os.stat("/proc/self/ns/pid").st_ino
        except OSError:
            namespace = 0
        return f"\0runvitals-{os.getuid()}-{namespace}-{part}"
    folder = f"/tmp/runvitals-{os.getuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return f"{folder}/{part[-_LONGEST_FILE_NAME:]}.sock"


def start(
    command: Sequence[str], file_actions: Sequence[tuple[int, ...]], environ: Mapping[str, str]
) -> None:
    """Start a program in a session of its own; 1 to 2 ms.

    Args:
        command: the program's absolute path and its arguments.
        file_actions: as of `os.posix_spawn`.

    Raises:
        OSError: it cannot be started.
    """
    shell = ["/bin/sh", "-c", _IN_BACKGROUND, *command]
    try:
        pid = os.posix_spawn(shell[0], shell, environ, file_actions=file_actions, setsid=True)
    except NotImplementedError:  # a C library whose posix_spawn cannot make a session
        pid = os.posix_spawn("/usr/bin/env", ["env", "setsid", *shell], environ, file_actions=file_actions)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # SIGCHLD is ignored in this process: the shell is already reaped
