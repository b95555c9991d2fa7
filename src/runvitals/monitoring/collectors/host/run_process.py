"""One process of a run, read from its files in /proc."""

from __future__ import annotations

import os
import resource
import time

from runvitals.monitoring.collectors.base import TICKS_PER_SECOND

NS_PER_TICK = 1_000_000_000 // TICKS_PER_SECOND
# File descriptors reserved for everything else in this process.
SPARE_DESCRIPTORS = 128
MAX_DESCRIPTORS = 16_384
# CPU time taken over from children counts if it was taken over in this interval or the one before.
MAX_MISSED = 1


class ProcessGone(Exception):
    """The process has ended and was reaped."""


class DescriptorBudget:
    """A limit on the files that are kept open.

    Each open file saves 4 µs a read, and a thousand processes have three thousand files.

    Raises the soft limit of this process to the hard limit.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
        self.left = (MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft) - SPARE_DESCRIPTORS


class ProcFile:
    """A file of one process, kept open if the budget allows it.

    An open file never refers to another process with the same PID: reading it then fails with ESRCH.
    """

    __slots__ = ("_descriptors", "_fd", "_path", "_size")

    def __init__(self, path: str, size: int, descriptors: DescriptorBudget | None) -> None:
        self._path = path
        self._size = size
        self._descriptors = descriptors
        self._fd = -1

    def read(self) -> bytes:
        """Raises ProcessGone, or PermissionError for another user's process."""
        try:
            if self._fd >= 0:
                return os.pread(self._fd, self._size, 0)
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise ProcessGone from None
        if self._descriptors is not None and self._descriptors.left > 0:
            self._descriptors.left -= 1
            self._fd = fd
        try:
            return os.pread(fd, self._size, 0)
        except ProcessLookupError:
            raise ProcessGone from None
        finally:
            if self._fd < 0:
                os.close(fd)

    def close(self) -> None:
        """Release what is open."""
        if self._fd >= 0 and self._descriptors is not None:
            os.close(self._fd)
            self._fd = -1
            self._descriptors.left += 1

    def __del__(self) -> None:
        self.close()


class ProcessUsage:
    """A process's CPU time, memory, threads and storage traffic.

    When a process reaps a child, the kernel adds the child's CPU time and storage traffic to the parent's
    counters. ``take_over`` tells the parent what was already counted while the child was alive. So nothing
    counts twice, nothing is lost, and children that were too short-lived to be seen count too.

    Args:
        is_new: it was started while we watched, so everything it has used counts; otherwise only its use
            from now on.
        descriptors: None = open each file for every read, as a copied /proc needs.
        has_clock: read the CPU time from the process's clock in the kernel (nanoseconds, 1 µs) instead of
            from its stat (10 ms, 9 µs).
    """

    __slots__ = (
        "_clock",
        "_counted_cpu_ns",
        "_counted_read",
        "_counted_written",
        "_io",
        "_raw_read",
        "_raw_written",
        "_start",
        "_stat",
        "_statm",
        "cpu_ns",
        "has_children",
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
        self,
        proc: str,
        pid: int,
        ppid: int,
        is_new: bool,
        descriptors: DescriptorBudget | None,
        has_clock: bool,
    ) -> None:
        self.pid = pid
        self.ppid = ppid
        self.cpu_ns = self.reaped_ns = 0
        self.rss_pages = self.threads = 0
        self.has_children = False  # it reaps children
        self.missed = 0 if is_new else MAX_MISSED + 1  # samples in which it ran without a full reading
        self._raw_read = self._raw_written = 0
        # Storage traffic, without that taken over from children and counted with them.
        self.read_bytes = self.written_bytes = 0
        self._counted_cpu_ns = self._counted_read = self._counted_written = 0
        self._start = b""
        self._clock = (~pid << 3) | 2 if has_clock else 0
        self._statm = ProcFile(f"{proc}/{pid}/statm", 128, descriptors)
        self._stat = ProcFile(f"{proc}/{pid}/stat", 1024, descriptors)
        self._io: ProcFile | None = ProcFile(f"{proc}/{pid}/io", 512, descriptors)
        try:
            self.read_clock()
            self.read_all()
        except ProcessGone:
            self.close()
            raise

    def read_clock(self) -> int:
        """CPU time used since the last call, in ns.

        0 = it has not run, so nothing else has changed by its own activity.

        Raises:
            ProcessGone: the process has ended.
        """
        if not self._clock:
            return self._read_ticks()
        try:
            now = time.clock_gettime_ns(self._clock)
        except OSError:  # EINVAL: no process of that id
            raise ProcessGone from None
        used = now - self.cpu_ns
        self.cpu_ns = now
        return used

    def read_memory(self) -> None:
        """Read the resident pages: 2 µs. Raises ProcessGone."""
        self.rss_pages = int(self._statm.read().split(None, 2)[1])
        if not self.rss_pages:  # a zombie
            self.threads = 0
        self.missed += 1

    def read_all(self) -> int:
        """Read memory, threads, children and storage traffic: 14 µs.

        Returns:
            CPU time in ns of reaped children that has not been counted yet.

        Raises:
            ProcessGone: the process has ended, or its PID belongs to another process.
        """
        fields = self._read_stat()
        self.threads = 0 if fields[0] == b"Z" else int(fields[17])
        self.rss_pages = int(fields[21])
        reaped_ns = (int(fields[13]) + int(fields[14])) * NS_PER_TICK
        grown = reaped_ns - self.reaped_ns
        self.reaped_ns = reaped_ns
        uncounted = 0
        if grown > 0:
            self.has_children = True
            # CPU time taken over during many intervals must not count in this one.
            uncounted = max(0, grown - self._counted_cpu_ns) if self.missed <= MAX_MISSED else 0
        self.missed = 0
        self._counted_cpu_ns = 0
        self._read_io()
        return uncounted

    def take_over(self, child: ProcessUsage) -> None:
        """Record that a descendant has ended: its use is in our counters, or will be when we reap it."""
        self._counted_cpu_ns += child.cpu_ns + child.reaped_ns
        self._counted_read += child._raw_read
        self._counted_written += child._raw_written

    @property
    def has_io(self) -> bool:
        """Whether the storage traffic can be read."""
        return self._io is not None

    def close(self) -> None:
        """Release what is open."""
        self._statm.close()
        self._stat.close()
        if self._io is not None:
            self._io.close()

    def _read_stat(self) -> list[bytes]:
        """Read the fields of /proc/PID/stat after the name.

        State is 0, parent 1, utime 11, cutime 13, threads 17, start time 19, resident pages 21.
        """
        data = self._stat.read()
        fields = data[data.rindex(b")") + 2 :].split(None, 22)
        if not self._start:
            self._start = fields[19]
        elif fields[19] != self._start:
            raise ProcessGone
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
        except (PermissionError, ProcessGone):  # another user's process, or a kernel without I/O accounting
            self._io.close()
            self._io = None
            return
        read, written = int(words[9]), int(words[11])
        more_read, more_written = read - self._raw_read, written - self._raw_written
        self.read_bytes += more_read - min(self._counted_read, more_read)
        self.written_bytes += more_written - min(self._counted_written, more_written)
        self._counted_read = self._counted_written = 0
        self._raw_read, self._raw_written = read, written


def has_process_clocks() -> bool:
    """Return whether the kernel keeps CPU clocks of other processes (some sandboxes return EINVAL)."""
    try:
        return time.clock_gettime_ns((~os.getpid() << 3) | 2) > 0
    except OSError:
        return False
