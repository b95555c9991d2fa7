"""The processes of a run on this host: noticing within a millisecond that one has gone, and learning how it
ended.
"""

from __future__ import annotations

import os
from errno import EPERM, ESRCH

from runvitals.collectors.base import PseudoFile, open_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# ioctl PIDFD_GET_INFO, Linux 6.15 and later (include/uapi/linux/pidfd.h): a 64-byte struct pidfd_info whose
# first word says what is asked for and what was answered, and whose last is the wait status of a process that
# has been reaped.
_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_SIZE = 64
_PIDFD_INFO_EXIT = 1 << 3

_SIGINT, _SIGTERM = 2, 15
_STOP_SIGNALS = frozenset({1, _SIGINT, _SIGTERM})  # HUP and these: somebody asked for the end


class Exit:
    """How a process ended: an exit code, or a signal, or (old kernel, already reaped) neither is known."""

    __slots__ = ("exit_code", "signal")

    def __init__(self, exit_code: int | None, signal: int | None) -> None:
        self.exit_code = exit_code
        self.signal = signal

    @property
    def known(self) -> bool:
        return self.exit_code is not None or self.signal is not None


def exit_of(wait_status: int) -> Exit:
    """Decode a wait status (wait(2)): code in the second byte, signal in the low seven bits.

    Example:
        >>> exit_of(0x300).exit_code, exit_of(9).signal
        (3, 9)
    """
    signal = wait_status & 0x7F
    return Exit(None, signal) if signal else Exit(wait_status >> 8 & 0xFF, None)


class Process:
    """One process that belongs to the run.

    Args:
        pid: as this process sees it.
        about: the attach message: role, rank, writer … It goes into the journal.
        pidfd: a descriptor the process itself opened and handed on, which is right even if it has died since;
            else one is opened here.
    """

    __slots__ = (
        "_stat",
        "about",
        "closing",
        "exit",
        "exit_hint",
        "finished",
        "gone",
        "pid",
        "pidfd",
        "recorded",
        "role",
    )

    def __init__(self, pid: int, about: dict[str, Any], pidfd: int = -1) -> None:
        self.pid = pid
        self.about = about
        self.role = str(about.get("role", "train"))
        self.pidfd = pidfd
        self.finished = False  # it said that it is done with the run
        self.closing = False  # it said that its interpreter is ending: the exit code is still to come
        self.exit_hint: int | None = None
        self.gone = False
        self.recorded = False  # its end is in the journal
        self.exit = Exit(None, None)
        self._stat: PseudoFile | None = open_if_there(f"/proc/{pid}/stat")
        if self.pidfd < 0:
            self._open_pidfd()

    def _open_pidfd(self) -> None:
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except AttributeError:
            return  # no pidfd_open in this Python or on this system: `check` looks at every tick
        except OSError as error:
            # EPERM: old Docker seccomp filters forbid the call; ENOSYS: a kernel before 5.3. `check` looks at
            # every tick then.
            if error.errno == ESRCH and not self._is_there():
                self.gone = True
            elif error.errno == EPERM:
                return

    def _is_there(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    @property
    def over(self) -> bool:
        """Nothing more is to be learned from this process."""
        return self.gone or (self.finished and not self.closing)

    def check(self) -> bool:
        """Whether it has gone, where there is no pidfd to tell: its stat file answers ESRCH, or shows a
        zombie.
        """
        if self._stat is None:
            return not self._is_there()
        try:
            text = self._stat.read()
        except OSError:
            return True
        return text.rpartition(b")")[2].split()[0] in (b"Z", b"X")

    def learn_exit(self) -> Exit:
        """How it ended, by whatever still knows: the kernel after the reaping, the zombie's stat line before
        it.
        """
        for ask in (self._exit_from_pidfd, self._exit_from_stat):
            status = ask()
            if status is not None:
                self.exit = exit_of(status)
                break
        return self.exit

    def _exit_from_pidfd(self) -> int | None:
        if self.pidfd < 0:
            return None
        from fcntl import ioctl

        info = bytearray(_PIDFD_INFO_SIZE)
        info[0:8] = _PIDFD_INFO_EXIT.to_bytes(8, "little")
        try:
            ioctl(self.pidfd, _PIDFD_GET_INFO, info)
        except OSError:
            return None  # a kernel before 6.15 does not know this call
        if not int.from_bytes(info[0:8], "little") & _PIDFD_INFO_EXIT:
            return None  # not reaped yet
        return int.from_bytes(info[60:64], "little", signed=True)

    def _exit_from_stat(self) -> int | None:
        if self._stat is None:
            return None
        try:
            fields = self._stat.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return int(fields[-1]) if fields and fields[0] in (b"Z", b"X") else None

    def close(self) -> None:
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if self._stat is not None:
            self._stat.close()
            self._stat = None


def stop_signal(pid: int) -> int:
    """What asks a process to end: SIGINT, as Ctrl-C does; SIGTERM where that is ignored, as by what a script
    started with `&`.
    """
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            ignored = [line.split()[1] for line in file if line.startswith(b"SigIgn:")]
    except OSError:
        return _SIGINT  # no such file system, or the process is gone: the signal itself will tell
    return _SIGTERM if ignored and int(ignored[0], 16) & 1 << (_SIGINT - 1) else _SIGINT


def state_of(exit: Exit) -> str:
    """The state a run has when this is how its process ended."""
    if exit.signal is not None:
        return "stopped" if exit.signal in _STOP_SIGNALS else "crashed"
    if exit.exit_code in (128 + 2, 128 + 15):
        return "stopped"  # a shell's word for a child that INT or TERM ended
    return "failed" if exit.exit_code else "finished"


_WORST_FIRST = ("crashed", "failed", "stopped", "finished")


def verdict(exits: list[Exit], stop_asked: bool = False) -> tuple[str, Exit]:
    """The state of the run on this host, and the exit that decided it: the worst of all processes.

    Args:
        stop_asked: a person asked for the end, so that any exit but a crash is what was asked for.

    Example:
        >>> verdict([Exit(0, None), Exit(None, 9)])[0]
        'crashed'
    """
    ranked = sorted(exits, key=lambda exit: _WORST_FIRST.index(state_of(exit)))
    decisive = ranked[0] if ranked else Exit(0, None)
    state = state_of(decisive)
    return ("stopped" if stop_asked and state != "crashed" else state), decisive
