"""The processes of a run on this host: noticing within a millisecond that one has gone, and learning how it
ended.

A process is in one of four states::

                 finish, its interpreter ends
        running ─────────────────────────────▶ closing
         │   │                                 │   │
         │   │ finish                  finish, │   │ its end is seen
         │   │                     or overdue  │   │
         │   └────────────▶ left ◀─────────────┘   │
         │                                         ▼
         └───────────────────────────────────────▶ gone
                      its end is seen

running: it has attached.
closing: it said that its interpreter is ending. How it ends is yet to be seen; it is waited for so long.
left: it said that it is done with the run, or it was closing for too long. It may live on for all we care.
gone: it has ended, and how is on record.

`left` and `gone` are over: nothing follows, and `exit` is final.
"""

from __future__ import annotations

import os
from errno import ESRCH

from runvitals.collectors.base import PseudoFile, open_if_there
from runvitals.model.ending import ProcessExit

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


RUNNING, CLOSING, LEFT, GONE = "running", "closing", "left", "gone"
# A process that said "my interpreter is ending" is waited for this long; then its word is taken for its end.
CLOSING_GRACE_S = 60.0
# How often a process is looked at where no descriptor tells of its end.
LOOK_S = 1.0
NEVER = float("inf")

_PF_EXITING = 0x4  # include/linux/sched.h
_PENDING_KILL = 1 << 8  # of SIGKILL in a mask of signals


def exit_of(wait_status: int) -> ProcessExit:
    """Decode a wait status (wait(2)): code in the second byte, signal in the low seven bits.

    Example:
        >>> exit_of(0x300).exit_code, exit_of(9).signal
        (3, 9)
    """
    signal = wait_status & 0x7F
    return ProcessExit(None, signal) if signal else ProcessExit(wait_status >> 8 & 0xFF, None)


class Process:
    """One process that belongs to the run.

    Args:
        pid: as this process sees it.
        about: the attach message: role, rank, writer … It goes into the journal.
        pidfd: a descriptor the process itself opened and handed on, which is right even if it has died since;
            else one is opened here.
        now_s: monotonic clock.

    Attributes:
        state: see the module.
        exit: how it ended, as far as that is known.
        look_at_s: when to `look` at it again.
        short_of_memory: the kernel killed something for want of memory while this was being killed.
    """

    __slots__ = (
        "_closing_until_s", "_said", "_stat", "about", "exit", "look_at_s", "pid", "pidfd", "role",
        "short_of_memory", "state",
    )  # fmt: skip

    def __init__(self, pid: int, about: dict[str, Any], pidfd: int = -1, now_s: float = 0.0) -> None:
        self.pid = pid
        self.about = about
        self.role = str(about.get("role", "train"))
        self.pidfd = pidfd
        self.state = RUNNING
        self.exit = ProcessExit(None, None)
        self.short_of_memory = False
        self._said: int | None = None  # the exit code a closing process expects to end with
        self._closing_until_s = NEVER
        self._stat: PseudoFile | None = open_if_there(f"/proc/{pid}/stat")
        if self.pidfd < 0:
            self._open_pidfd()
        self.look_at_s = NEVER if self.pidfd >= 0 else now_s + LOOK_S

    def _open_pidfd(self) -> None:
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except AttributeError:
            return  # no pidfd_open in this Python or on this system: `look` tells
        except OSError as error:
            # EPERM: old Docker seccomp filters forbid the call; ENOSYS: a kernel before 5.3.
            if error.errno == ESRCH and not self._is_there():
                self.state = GONE

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
        return self.state in (LEFT, GONE)

    def leave(self, exit_code: int | None) -> None:
        """It is done with the run."""
        self.exit = ProcessExit(exit_code or 0, None)
        self._end(LEFT)

    def close_down(self, exit_code: int | None, now_s: float) -> None:
        """Its interpreter is ending, with this exit code as far as that is known."""
        self.state = CLOSING
        self._said = exit_code
        self._closing_until_s = now_s + CLOSING_GRACE_S
        self.look_at_s = min(self.look_at_s, self._closing_until_s)

    def vanish(self) -> None:
        """It has ended. What it said of its end counts where nothing else is known."""
        if not self.exit.known and self.state == CLOSING:
            self.exit = ProcessExit(self._said, None)
        elif not self.exit.known:
            self.exit.unannounced = True
        self._end(GONE)

    def look(self, now_s: float) -> bool:
        """Look at it where no descriptor does; whether it has ended. One that closes for too long has left,
        and is taken at its word.
        """
        if self.pidfd < 0:
            if self.check():
                return True
            self.look_at_s = min(now_s + LOOK_S, self._closing_until_s)
        if now_s >= self._closing_until_s:
            self.exit = ProcessExit(self._said, None)
            self._end(LEFT)
        return False

    def _end(self, state: str) -> None:
        self.state = state
        self.look_at_s = self._closing_until_s = NEVER
        self.release()

    def dying(self) -> bool:
        """Whether it is on its way out, or will be as soon as it runs again: a large process takes seconds
        from the kill to its end.
        """
        try:
            if self._stat is not None:
                fields = self._stat.read().rpartition(b")")[2].split()
                if int(fields[6]) & _PF_EXITING:
                    return True
            with open(f"/proc/{self.pid}/status", "rb") as file:
                pending = [line.split()[1] for line in file if line.startswith((b"SigPnd:", b"ShdPnd:"))]
        except OSError:
            return not self._is_there()
        return any(int(mask, 16) & _PENDING_KILL for mask in pending)

    def processor(self) -> int | None:
        """The processor that its main thread was last on."""
        if self._stat is None:
            return None
        try:
            return int(self._stat.read().rpartition(b")")[2].split()[36])
        except OSError:
            return None  # it has ended

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

    def learn_exit(self) -> ProcessExit:
        """How it ended, by whatever still knows: the kernel after the reaping, the zombie's stat line before
        it.
        """
        for ask in (self._exit_from_pidfd, self._exit_from_stat):
            status = ask()
            if status is not None:
                self.exit = exit_of(status)
                break
        return self.exit

    def foresee_exit(self) -> None:
        """Its connection has ended, perhaps since it is ending itself. Then the kernel already tells how; a
        moment later its parent may have reaped it, and only new kernels still do.
        """
        status = self._exit_from_stat()
        if status is not None:
            self.exit = exit_of(status)

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
        ends = bool(fields) and (fields[0] in (b"Z", b"X") or bool(int(fields[6]) & _PF_EXITING))
        return int(fields[-1]) if ends else None

    def release(self) -> None:
        """Let go of what it is watched with."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if self._stat is not None:
            self._stat.close()
            self._stat = None


def handed_pidfd(fd: int, pid: int) -> int:
    """`fd`, if it is a pidfd of this process that was handed to us; else -1, and `fd` is closed: where no
    pidfd can be had, something else of our parent's may have that number.
    """
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            words = [line.split() for line in file if line.startswith((b"Pid:", b"NSpid:"))]
    except OSError:
        words = []  # it is not open, or nothing tells what it is
    # A process that has been reaped in the meantime has the number -1.
    if any(int(number) in (pid, -1) for line in words for number in line[1:]):
        return fd
    try:
        os.close(fd)
    except OSError:
        return -1
    return -1


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
