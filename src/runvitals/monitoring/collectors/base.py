"""The interface of a collector, and the objects passed to it.

A collector reads one source into a sample. Its module has a function and a class::

    def probe(scope: Scope) -> Collector | None:  # None, or raise Absent("why"), if it is not available

    class Disk:
        name = "disk"
        absent = {"disk./data": "no such folder"}  # optional: what has no value, and why; see below
        facts = {"disks": [{"name": "sda"}]}  # optional: facts about the machine; assign a new object when
                                              # they change
        every_s = 5.0  # optional: the sampling interval, if longer than the run's
        pending = False  # optional: the first reading has not arrived yet; a caller that wants a single
                         # reading waits for it
        def sample(self, tick: Tick) -> None:  # write the current values into the tick
        def close(self) -> None:  # optional: called at the end of the run; must not block

Every key that a collector can write has a reason in ``absent`` while it has no value. ``absent`` maps a key
(``cpu.avg_temp``), the beginning of keys up to a dot (``disk./data``), or for ``gpu.{i}.…`` the end of keys
(``powerWatts``; ``process.temp`` of ``gpu.process.{i}.temp``) to the reason. If only some devices lack a
reading, the reason names them: see `plumbing.missing_readings`. A collector reports a change by assigning a
new object, and only then.

The monitor imports these modules at start under ``python -I -S``. They use only the standard library, and
none of its heavy modules (``re``, ``json``, ``typing``, ``dataclasses``, ``subprocess``, ``socket``), each of
which costs memory and start time.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    class Collector(Protocol):
        """Reads one source. ``sample`` raises only on failure; an unavailable value is a missing key."""

        name: str

        def sample(self, tick: Tick) -> None:
            """Write the current values into the tick."""

    Probe = Callable[["Scope"], Collector | None]

# How a reason starts if nothing is wrong: this machine has nothing of the kind, such as swap.
NOTHING_THERE = "there is none"

MIB = 1024.0 * 1024.0
GIB = 1024.0 * MIB
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Absent(Exception):
    """Raised by a probe when its source is not available on this machine. The message says why."""


class Scope:
    """The run and machine that a collector observes.

    Args:
        host_root: folder that contains the host's ``proc`` and ``sys``; "" for the machine's root.
        pids: the root processes of the run. The list is live: the monitor appends each rank that joins.
        process_tree: include descendants of ``pids`` (data-loader workers).
        disk_paths: paths whose file systems are reported, as the user wrote them.
        interval_s: the sampling interval. Some collectors choose between a cheap and a thorough reading by
            it.
        options: settings for single collectors, by name; settings that are not set may be missing.

    ``site_folders`` lists the folders of the training's installed packages, for collectors that need a
    vendor's library; ``probe_all`` sets it. ``whole_machine`` is True when there is no run, so that devices
    are reported which otherwise count only if the run uses them.

    Example:
        >>> scope = Scope(host_root="/host")
        >>> scope.path("/proc/stat")
        '/host/proc/stat'
    """

    __slots__ = (
        "disk_paths", "host_root", "interval_s", "options", "pids", "process_tree", "site_folders",
        "whole_machine",
    )  # fmt: skip

    def __init__(
        self,
        host_root: str = "",
        pids: Iterable[int] = (),
        process_tree: bool = True,
        disk_paths: Sequence[str] = ("/",),
        interval_s: float = 1.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.host_root = host_root.rstrip("/")
        self.pids = list(pids)
        self.process_tree = process_tree
        self.disk_paths = tuple(disk_paths)
        self.interval_s = interval_s
        self.options = dict(options or {})
        self.site_folders: tuple[str, ...] = ()
        self.whole_machine = False

    def path(self, absolute: str) -> str:
        """Return an absolute path of the host, below ``host_root``."""
        return self.host_root + absolute


class Tick:
    """The sample being taken: its time, and the values that the collectors have read.

    ``gauges`` and ``counters`` map keys to values. A counter is the source's running total. It
    may start anywhere: the monitor subtracts the first value, so stored counters start at 0 with the run.

    ``events`` lists what happened since the last tick: objects with ``name``, ``level`` (``info``,
    ``warning`` or ``error``), ``text`` for the user, and any further fields.

    Args:
        mono_s: time of the sample on the monotonic clock, in seconds.
    """

    __slots__ = ("counters", "events", "gauges", "mono_s")

    def __init__(self, mono_s: float) -> None:
        self.mono_s = mono_s
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}
        self.events: list[dict[str, object]] = []


# Half a per cent too early counts as due: with the jitter of a 1 s clock, every 5 s would become every 6 s.
EARLY = 0.995


class Every:
    """Limits how often something is done: for sources that are expensive or rarely change.

    Example:
        >>> refresh = Every(5.0)
        >>> refresh.due(100.0), refresh.due(101.0), refresh.due(105.0)
        (True, False, True)
    """

    __slots__ = ("_next_s", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._next_s = float("-inf")

    def due(self, mono_s: float) -> bool:
        """Return whether `seconds` have passed since this last returned True."""
        if mono_s < self._next_s:
            return False
        self._next_s = mono_s + self.seconds * EARLY
        return True


# A seq_file (`/proc/net/dev`, `/proc/diskstats`) returns at most one page per read, cut at the end of a line.
# So a read shorter than this is the whole file. A longer one is continued until the kernel returns nothing,
# which costs one more system call.
_WHOLE_BELOW = 3500
_READ_SIZE = 1 << 16


class PseudoFile:
    r"""A file of /proc or /sys that stays open and is read repeatedly from its start.

    Keeping the descriptor saves open and close, 4 µs per read. ``pread`` at offset 0 makes the kernel
    generate the text again.

    Raises:
        OSError: by the constructor, if the file is missing or may not be read.

    Example:
        >>> PseudoFile("/proc/loadavg").read()
        b'0.10 0.20 0.30 1/123 4567\n'
    """

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self.open()

    def open(self) -> None:
        """Open the file, again if it is closed: that of a driver that was loaded anew is another one."""
        self.close()
        self.fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def read(self) -> bytes:
        """Return the current contents of the whole file."""
        data = os.pread(self.fd, _READ_SIZE, 0)
        if len(data) < _WHOLE_BELOW:
            return data
        while more := os.pread(self.fd, _READ_SIZE, len(data)):
            data += more
        return data

    def read_start(self, size: int = 4096) -> bytes:
        """The first bytes of a file that may be long, cut anywhere, so that the kernel skips the rest."""
        return os.pread(self.fd, size, 0)

    def close(self) -> None:
        """Close the file; without effect if it is closed."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()  # of a collector that was dropped, such as one whose card is gone


def open_if_there(path: str) -> PseudoFile | None:
    """Return a PseudoFile that was read once, or None if that failed: missing, not permitted, or disabled."""
    try:
        file = PseudoFile(path)
    except OSError:
        return None
    try:
        file.read()
    except OSError:
        file.close()
        return None
    return file


def read_text(path: str, most: int = _READ_SIZE) -> str | None:
    """Return the text of a file without trailing newlines, or None if it cannot be read.

    Args:
        path: the file.
        most: the bytes after which a longer file is cut off.
    """
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        data = piece = os.read(fd, most)
        while len(data) < most and len(piece) >= _WHOLE_BELOW:
            piece = os.read(fd, most - len(data))
            data += piece
        return data.decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return None
    finally:
        os.close(fd)
