"""One process of a run, read from its files in /proc."""

from __future__ import annotations

import os
import resource
import time

from runvitals.collectors.base import TICKS_PER_SECOND

NS_PER_TICK = 1_000_000_000 // TICKS_PER_SECOND
# Descriptors left to everything else in this process.
SPARE_DESCRIPTORS = 128
MOST_DESCRIPTORS = 16_384
# CPU time taken over from children counts if it was taken over in this interval or the one before.
MOST_MISSED = 1


class Gone(Exception):
    """The process has ended and been waited for."""


class Descriptors:
    """How many files may be kept open: each one kept saves 4 µs a read, and a thousand processes have three
    thousand.

    Raises the soft limit of this process as far as the hard one allows.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        self.left = (MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft) - SPARE_DESCRIPTORS


class ProcFile:
    """A file of one process, kept open if there is room for it. Kept open it cannot come to speak of another
    process that was given the same id: it answers ESRCH.
    """

    __slots__ = ("_descriptors", "_fd", "_path", "_size")

    def __init__(self, path: str, size: int, descriptors: Descriptors | None) -> None:
        self._path = path
        self._size = size
        self._descriptors = descriptors
        self._fd = -1

    def read(self) -> bytes:
        """Raises Gone, or PermissionError for another user's process."""
        try:
            if self._fd >= 0:
                return os.pread(self._fd, self._size, 0)
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise Gone from None
        if self._descriptors is not None and self._descriptors.left > 0:
            self._descriptors.left -= 1
            self._fd = fd
        try:
            return os.pread(fd, self._size, 0)
        except ProcessLookupError:
            raise Gone from None
        finally:
            if self._fd < 0:
                os.close(fd)

    def close(self) -> None:
        if self._fd >= 0 and self._descriptors is not None:
            os.close(self._fd)
            self._fd = -1
            self._descriptors.left += 1


class Member:
    """A process's CPU time, memory, threads and storage traffic.

    When a process waits for a child that has ended, the kernel adds the child's CPU time and storage traffic
    to its own books. ``owe`` tells a member what of that was counted already while the child lived: so
    nothing counts twice, nothing is lost, and children too short-lived to be seen count as well.

    Args:
        born: it was started under our eyes, so all it has used counts; else only what it uses from now on.
        descriptors: None = open each file anew, which a copied /proc needs.
        clocked: read its CPU time from the kernel's clock of the process (nanoseconds, 1 µs) instead of from
            its stat (10 ms, 9 µs).
    """

    __slots__ = (
        "_clock",
        "_io",
        "_owed_cpu_ns",
        "_owed_read",
        "_owed_written",
        "_raw_read",
        "_raw_written",
        "_start",
        "_stat",
        "_statm",
        "breeds",
        "cpu_ns",
        "missed",
        "pid",
        "ppid",
        "read_bytes",
        "reaped_ns",
        "rss_pages",
        "threads",
        "written_bytes",
    )

    def __init__(
        self, proc: str, pid: int, ppid: int, born: bool, descriptors: Descriptors | None, clocked: bool
    ) -> None:
        self.pid = pid
        self.ppid = ppid
        self.cpu_ns = self.reaped_ns = 0
        self.rss_pages = self.threads = 0
        self.breeds = False  # it waits for children
        self.missed = 0 if born else MOST_MISSED + 1  # samples in which it ran and its books were not read
        self._raw_read = self._raw_written = 0
        # Storage traffic, less what was taken over from children and counted with them.
        self.read_bytes = self.written_bytes = 0
        self._owed_cpu_ns = self._owed_read = self._owed_written = 0
        self._start = b""
        self._clock = (~pid << 3) | 2 if clocked else 0
        self._statm = ProcFile(f"{proc}/{pid}/statm", 128, descriptors)
        self._stat = ProcFile(f"{proc}/{pid}/stat", 1024, descriptors)
        self._io: ProcFile | None = ProcFile(f"{proc}/{pid}/io", 512, descriptors)
        try:
            self.read_clock()
            self.read_books()
        except Gone:
            self.close()
            raise

    def read_clock(self) -> int:
        """CPU time used since the last call, in ns. 0 = it has not run, so nothing else of it has changed by
        its own doing.

        Raises:
            Gone: the process has ended.
        """
        if not self._clock:
            return self._read_ticks()
        try:
            now = time.clock_gettime_ns(self._clock)
        except OSError:  # EINVAL: no process of that id
            raise Gone from None
        used = now - self.cpu_ns
        self.cpu_ns = now
        return used

    def read_memory(self) -> None:
        """Resident pages: 2 µs. Raises Gone."""
        self.rss_pages = int(self._statm.read().split(None, 2)[1])
        if not self.rss_pages:  # it has ended and waits for its parent
            self.threads = 0
        self.missed += 1

    def read_books(self) -> int:
        """Memory, threads, children and storage traffic: 14 µs.

        Returns:
            CPU time in ns of children that have ended and were waited for, as far as nobody has counted it.

        Raises:
            Gone: the process has ended, or another one has its id.
        """
        fields = self._read_stat()
        self.threads = 0 if fields[0] == b"Z" else int(fields[17])
        self.rss_pages = int(fields[21])
        reaped_ns = (int(fields[13]) + int(fields[14])) * NS_PER_TICK
        grown = reaped_ns - self.reaped_ns
        self.reaped_ns = reaped_ns
        uncounted = 0
        if grown > 0:
            self.breeds = True
            # What it took over during many intervals must not all fall on this one.
            uncounted = max(0, grown - self._owed_cpu_ns) if self.missed <= MOST_MISSED else 0
        self.missed = 0
        self._owed_cpu_ns = 0
        self._read_io()
        return uncounted

    def owe(self, child: Member) -> None:
        """A child, or a child's child, has ended: what it had is in our books now, or will be once we have
        waited for it.
        """
        self._owed_cpu_ns += child.cpu_ns + child.reaped_ns
        self._owed_read += child._raw_read
        self._owed_written += child._raw_written

    @property
    def tells_io(self) -> bool:
        return self._io is not None

    def close(self) -> None:
        self._statm.close()
        self._stat.close()
        if self._io is not None:
            self._io.close()

    def _read_stat(self) -> list[bytes]:
        """The fields after the name: state, parent, …; utime is 11, cutime 13, threads 17, start time 19,
        resident pages 21.
        """
        data = self._stat.read()
        fields = data[data.rindex(b")") + 2 :].split(None, 22)
        if not self._start:
            self._start = fields[19]
        elif fields[19] != self._start:
            raise Gone
        return fields

    def _read_ticks(self) -> int:
        fields = self._read_stat()
        now = (int(fields[11]) + int(fields[12])) * NS_PER_TICK
        used = now - self.cpu_ns
        self.cpu_ns = now
        return used

    def _read_io(self) -> None:
        if self._io is None:
            return
        try:
            # rchar: n wchar: n syscr: n syscw: n read_bytes: n write_bytes: n …
            words = self._io.read().split(None, 12)
        except (PermissionError, Gone):  # another user's, or the kernel keeps no account of it
            self._io.close()
            self._io = None
            return
        read, written = int(words[9]), int(words[11])
        more_read, more_written = read - self._raw_read, written - self._raw_written
        self.read_bytes += more_read - min(self._owed_read, more_read)
        self.written_bytes += more_written - min(self._owed_written, more_written)
        self._owed_read = self._owed_written = 0
        self._raw_read, self._raw_written = read, written


def has_process_clocks() -> bool:
    """Whether the kernel keeps CPU clocks of other processes (Linux does; some sandboxes answer EINVAL)."""
    try:
        return time.clock_gettime_ns((~os.getpid() << 3) | 2) > 0
    except OSError:
        return False
