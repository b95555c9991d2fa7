"""The processes of a run on this host: detects within a millisecond that one has ended, and how.

A process is in one of four states::

                 finish with "closing"
        running ─────────────────────▶ closing
          │  │                          │  │
          │  │ finish           finish, │  │ has ended
          │  │               or overdue │  │
          │  └───────▶ left ◀───────────┘  │
          │                                ▼
          └────────────────────────────▶ gone ◀──── attach of a process
                     has ended                      that has ended already

running: it has attached.
closing: its interpreter is shutting down, with an announced exit code. It is watched for up to
    `CLOSING_GRACE_S`, because how it really ends is not known yet.
left: it has finished its part in the run, or took too long to close. It may continue to exist.
gone: it has ended, and its exit is recorded.

`left` and `gone` are final (`over`): `exit` does not change any more.
"""

from __future__ import annotations

import os
from errno import ESRCH

from runvitals.model.ending import ProcessExit
from runvitals.monitoring.collectors.base import PseudoFile, open_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# ioctl PIDFD_GET_INFO, Linux 6.15 and later (include/uapi/linux/pidfd.h), with a 64-byte struct pidfd_info.
# Its first word is the mask of the fields requested and returned; its last is the wait status of a reaped
# process.
_MAX_ANCESTORS = 32
_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_SIZE = 64
_PIDFD_INFO_EXIT = 1 << 3

_SIGINT, _SIGTERM = 2, 15

RUNNING, CLOSING, LEFT, GONE = "running", "closing", "left", "gone"
# How long a closing process is watched. After that, its announced exit code is recorded as its exit.
CLOSING_GRACE_S = 60.0
# How often a process without a pidfd is checked.
CHECK_EVERY_S = 1.0
NEVER = float("inf")

_PF_EXITING = 0x4  # include/linux/sched.h
_PENDING_KILL = 1 << 8  # SIGKILL in a signal mask


def exit_of(wait_status: int) -> ProcessExit:
    """Decode a wait status (wait(2)): the exit code is in the second byte, the signal in the low seven bits.

    Example:
        >>> exit_of(0x300).exit_code, exit_of(9).signal
        (3, 9)
    """
    signal = wait_status & 0x7F
    return ProcessExit(None, signal) if signal else ProcessExit(wait_status >> 8 & 0xFF, None)


class WatchedProcess:
    """A process of the run.

    Args:
        pid: in this process's PID namespace.
        about: the attach message: role, rank, writer …
        pidfd: opened by the process itself and passed on, which is correct even if the process has ended
            since; -1: opened here.
        now_s: monotonic clock.

    Attributes:
        state: see the module.
        ancestors: pids of the processes that have started it.
        exit: how it ended, as far as known.
        check_at_s: when to call `check` again.
        oom_killed: whether it was being killed when the kernel's count of out-of-memory kills rose.
    """

    __slots__ = (
        "_announced_code", "_closing_until_s", "_stat", "about", "ancestors", "check_at_s", "exit",
        "oom_killed", "pid", "pidfd", "role", "state",
    )  # fmt: skip

    def __init__(self, pid: int, about: dict[str, Any], pidfd: int = -1, now_s: float = 0.0) -> None:
        self.pid = pid
        self.about = about
        self.role = str(about.get("role", "train"))
        self.pidfd = pidfd
        self.state = RUNNING
        self.ancestors = _ancestors_of(pid)
        self.exit = ProcessExit(None, None)
        self.oom_killed = False
        self._announced_code: int | None = None  # by a closing process
        self._closing_until_s = NEVER
        self._stat: PseudoFile | None = open_if_there(f"/proc/{pid}/stat")
        if self.pidfd < 0:
            self._open_pidfd()
        self.check_at_s = NEVER if self.pidfd >= 0 else now_s + CHECK_EVERY_S

    def _open_pidfd(self) -> None:
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except AttributeError:
            return  # not in this Python or not on this system: `check` is used instead
        except OSError as error:
            # EPERM: seccomp filters of old Docker versions forbid it; ENOSYS: kernels before 5.3.
            if error.errno == ESRCH and not self._exists():
                self.state = GONE

    def _exists(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    @property
    def over(self) -> bool:
        """Whether the state is final."""
        return self.state in (LEFT, GONE)

    @property
    def announced_exit(self) -> ProcessExit:
        """The end that a closing process expects."""
        return ProcessExit(self._announced_code, None)

    def leave(self, exit_code: int | None) -> None:
        """It has finished its part in the run, with this exit code; None counts as 0."""
        self.exit = ProcessExit(exit_code or 0, None)
        self._end(LEFT)

    def begin_closing(self, exit_code: int | None, now_s: float) -> None:
        """Its interpreter is shutting down, with this exit code; None: unknown."""
        self.state = CLOSING
        self._announced_code = exit_code
        self._closing_until_s = now_s + CLOSING_GRACE_S
        self.check_at_s = min(self.check_at_s, self._closing_until_s)

    def mark_gone(self) -> None:
        """It has ended. If how is unknown, the exit code that it announced counts."""
        if not self.exit.known and self.state == CLOSING:
            self.exit = self.announced_exit
        elif not self.exit.known:
            self.exit.unannounced = True
        self._end(GONE)

    def check(self, now_s: float) -> bool:
        """Return whether it has ended, if there is no pidfd to report it.

        A process that has been closing for too long becomes `left`.
        """
        if self.pidfd < 0:
            if self.has_ended():
                return True
            self.check_at_s = min(now_s + CHECK_EVERY_S, self._closing_until_s)
        if now_s >= self._closing_until_s:
            self.exit = self.announced_exit
            self._end(LEFT)
        return False

    def _end(self, state: str) -> None:
        self.state = state
        self.check_at_s = self._closing_until_s = NEVER
        self.release()

    def is_being_killed(self) -> bool:
        """Return whether it is exiting or has a pending SIGKILL.

        A large process takes seconds from the kill to its end.
        """
        try:
            if self._stat is not None:
                fields = self._stat.read().rpartition(b")")[2].split()
                if int(fields[6]) & _PF_EXITING:
                    return True
            with open(f"/proc/{self.pid}/status", "rb") as file:
                pending = [line.split()[1] for line in file if line.startswith((b"SigPnd:", b"ShdPnd:"))]
        except OSError:
            return not self._exists()
        return any(int(mask, 16) & _PENDING_KILL for mask in pending)

    def processor(self) -> int | None:
        """Return the processor that its main thread last ran on; None if it has ended."""
        if self._stat is None:
            return None
        try:
            return int(self._stat.read().rpartition(b")")[2].split()[36])
        except OSError:
            return None

    def has_ended(self) -> bool:
        """Return whether it has ended, without a pidfd: its stat file cannot be read, or shows a zombie."""
        if self._stat is None:
            return not self._exists()
        try:
            text = self._stat.read()
        except OSError:
            return True
        return text.rpartition(b")")[2].split()[0] in (b"Z", b"X")

    def read_exit(self) -> ProcessExit:
        """Read how it ended: from the pidfd after it was reaped, from the zombie's stat line before that."""
        for read in (self._exit_from_pidfd, self._exit_from_stat):
            status = read()
            if status is not None:
                self.exit = exit_of(status)
                break
        return self.exit

    def read_exit_early(self) -> None:
        """Read how it is ending, when its connection was closed.

        Its parent may reap it a moment later, and only kernels from 6.15 on report the exit of a reaped
        process.
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
            return None  # a kernel before 6.15
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
        is_exiting = bool(fields) and (fields[0] in (b"Z", b"X") or bool(int(fields[6]) & _PF_EXITING))
        return int(fields[-1]) if is_exiting else None

    def release(self) -> None:
        """Close the descriptors that it is watched with."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if self._stat is not None:
            self._stat.close()
            self._stat = None


def inherited_pidfd(fd: int, pid: int) -> int:
    """Return `fd` if it is a pidfd of this process.

    Otherwise close it and return -1: if the parent could not open a pidfd, another of its descriptors may
    have that number.
    """
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
            words = [line.split() for line in file if line.startswith((b"Pid:", b"NSpid:"))]
    except OSError:
        words = []  # not open, or no /proc
    # After the process was reaped, its number is -1.
    if any(int(number) in (pid, -1) for line in words for number in line[1:]):
        os.set_inheritable(fd, False)
        return fd
    try:
        os.close(fd)
    except OSError:
        return -1
    return -1


def stop_signal(pid: int) -> int:
    """Return the signal that requests a process to stop.

    SIGINT, as with Ctrl-C; SIGTERM if the process ignores SIGINT, as one does that a script started with `&`.
    """
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            ignored = [line.split()[1] for line in file if line.startswith(b"SigIgn:")]
    except OSError:
        return _SIGINT  # no /proc, or the process has ended: sending the signal shows which
    return _SIGTERM if ignored and int(ignored[0], 16) & 1 << (_SIGINT - 1) else _SIGINT


def _ancestors_of(pid: int) -> list[int]:
    """Return the processes that have started a process, from its parent on; empty where there is no /proc."""
    pids: list[int] = []
    while pid > 1 and len(pids) < _MAX_ANCESTORS:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            break
        pids.append(pid)
    return pids
