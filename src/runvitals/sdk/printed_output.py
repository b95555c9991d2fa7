"""Records what the training prints, at no cost that could be measured.

A stream that is written to a file needs nothing: the monitor reads the file, and so also what libraries in C
and other processes print. Of any other stream, such as a terminal or a pipe, what Python prints is copied to
memory that the monitor reads (`journal/output_memory.py`). The descriptors stay as they are: a pipe in
between would end the training, or block it, when its reader is killed.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import stat
import sys
from threading import RLock
from typing import TYPE_CHECKING, Any

from runvitals.journal import file_descriptor
from runvitals.journal.output_memory import (
    CHILDREN_AT,
    CHILDREN_BYTES,
    HEAD,
    RING_AT,
    RING_BYTES,
    STREAMS,
    file_position_at,
    piece,
)
from runvitals.monitoring.settings.messages import RECORDED_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Mapping

_FATAL = (4, 6, 7, 8, 11)  # ILL, ABRT, BUS, FPE, SEGV
_fault_report: tuple[int, file_descriptor.Identity] | None = None
_NAMES = {1: "stdout", 2: "stderr"}


class PrintedOutput:
    """Copies what Python writes to `sys.stdout` and `sys.stderr`, until `restore`.

    Args:
        files_only: record only streams that are written to files.

    Attributes:
        about: what the monitor is sent: the memory's descriptor, and the streams that are files.

    Raises:
        OSError: the system has no such memory, or no space.
    """

    def __init__(self, files_only: bool = False) -> None:
        self._fd = file_descriptor.move_to_high_number(_new_memory())
        self._memory = mmap.mmap(self._fd, CHILDREN_AT)
        self._lock = RLock()  # a signal handler may print while it interrupts a print
        self._head = 0
        self._children_fd = -1  # in a forked child: where it appends
        self._identity = file_descriptor.identity(self._fd)
        self._is_on = True
        self._wrapped: list[tuple[Any, Any]] = []  # a stream and our function
        files = [stream for stream in STREAMS if self._is_file(stream)]
        self.about = {"pid": os.getpid(), "fd": self._fd, "files": files}
        if not files_only:
            self._record_fatal_signals()
            for stream in STREAMS:
                if stream not in files:
                    self._wrap(stream)

    def _is_file(self, stream: int) -> bool:
        """Return whether Python's stream is written to a regular file; remember the file's end."""
        try:
            python_stream = getattr(sys, _NAMES[stream])
            status = os.fstat(stream)
            if python_stream.fileno() != stream or not stat.S_ISREG(status.st_mode):
                return False
        except Exception:  # noqa: BLE001 - closed, None, or an object of the script that is not a file
            return False
        at = file_position_at(stream)
        self._memory[at : at + 8] = status.st_size.to_bytes(8, "little")
        return True

    def _wrap(self, stream: int) -> None:
        """Replace the method `write` of the stream, which remains the same object."""
        python_stream = getattr(sys, _NAMES[stream])
        original, keep = getattr(python_stream, "write", None), self._keep
        if not callable(original):
            return

        def write(text: str) -> Any:
            result = original(text)
            if text:
                keep(stream, text)
            return result

        try:
            python_stream.write = write
        except (AttributeError, TypeError):
            return  # an object of the script whose attributes are fixed
        self._wrapped.append((python_stream, write))

    def _record_fatal_signals(self) -> None:
        """Let Python write where it was to the memory, if a segmentation fault or an abort ends the process.

        Not if any handler is installed: another runtime in this process may handle such signals itself. A
        later run takes the place of an earlier one: whether Python's handler is still ours cannot be known.
        """
        global _fault_report
        with file_descriptor.HigherLimit():
            fd = self._open_to_append()
            if _fault_report is not None and file_descriptor.is_still(*_fault_report):
                os.dup2(fd, _fault_report[0], inheritable=False)
                os.close(fd)
                _fault_report = _fault_report[0], self._identity
            elif faulthandler.is_enabled() or _handles_fatal_signals():
                os.close(fd)
            else:
                _fault_report = file_descriptor.move_to_high_number(fd), self._identity
                faulthandler.enable(_fault_report[0])

    def _open_to_append(self) -> int:
        return os.open(f"/proc/self/fd/{self._fd}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _keep(self, stream: int, text: str) -> None:
        if not self._is_on or not isinstance(text, str):
            return  # some streams of scripts take bytes
        data = piece(stream, text)
        if self._children_fd >= 0:
            self._append(data)
            return
        length = len(data)
        with self._lock:
            head, memory = self._head, self._memory
            self._head = head + length
            start = RING_AT + head % RING_BYTES
            over = start + length - CHILDREN_AT
            if over <= 0:
                memory[start : start + length] = data
            else:
                memory[start:CHILDREN_AT] = data[:-over]
                memory[RING_AT : RING_AT + over] = data[-over:]
            memory[HEAD] = self._head.to_bytes(8, "little")

    def _append(self, data: bytes) -> None:
        try:
            if os.fstat(self._children_fd).st_size < CHILDREN_AT + CHILDREN_BYTES:
                os.write(self._children_fd, data)
        except OSError:
            return  # the child has closed the descriptor

    def after_fork(self) -> None:
        """Append to the memory from now on, in a forked child: the ring belongs to its parent."""
        if self._children_fd >= 0:
            return  # the child of a child
        try:
            self._children_fd = self._open_to_append()
        except OSError:
            self.restore()

    def restore(self) -> None:
        """Copy nothing any more. A wrapper that somebody has put around ours keeps working."""
        self._is_on = False
        for python_stream, write in self._wrapped:
            if getattr(python_stream, "__dict__", {}).get("write") is write:
                del python_stream.write
        self._wrapped = []
        if file_descriptor.is_still(self._fd, self._identity):
            os.close(self._fd)


def record_output(values: Mapping[str, Any], run_id: str, files_only: bool = False) -> PrintedOutput | None:
    """Begin to record what this process prints, unless that is off or `runvitals run` does it."""
    off = values["console"] is False or os.environ.get(RECORDED_OUTPUT) == run_id
    if off or not hasattr(os, "memfd_create"):
        return None
    if 0 <= os.sysconf("SC_OPEN_MAX") < file_descriptor.LOW_LIMIT:
        return None  # `mmap` opens a second descriptor, with a number that the program may need
    try:
        return PrintedOutput(files_only)
    except (OSError, ValueError):
        return None


def _handles_fatal_signals() -> bool:
    """Return whether a handler is installed for a segmentation fault, a bus error or an abort."""
    try:
        with open("/proc/self/status", "rb") as file:
            caught = next(int(line.split()[1], 16) for line in file if line.startswith(b"SigCgt:"))
    except (OSError, StopIteration):
        return True
    return any(caught >> (number - 1) & 1 for number in _FATAL)


def _new_memory() -> int:
    fd = os.memfd_create("runvitals-output")
    try:
        os.write(fd, bytes(CHILDREN_AT))  # all of it exists from now on: writing to it cannot fail
    except OSError:
        os.close(fd)
        raise
    return fd
