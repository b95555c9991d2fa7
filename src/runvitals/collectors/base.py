"""What a collector is, and what it is handed.

A collector is one source of numbers, in one file, with two verbs::

    def probe(scope: Scope) -> Collector | None:  # module level: what is here? None, or raise Absent("why")
    class Disk:
        name = "disk"
        absent = {"/data": "no such folder"}  # optional: parts of this source that are not here, and why
        facts = {"disks": [{"name": "sda"}]}  # optional: what belongs to the facts about the machine; where
                                              # it changes, another object takes its place
        every_s = 5.0  # optional: how often to be sampled, where that is less often than the run's interval
        pending = False  # optional: a first answer is under way; who wants one reading only waits for it
        def sample(self, tick: Tick) -> None:  # write this moment's readings into the tick
        def close(self) -> None:  # optional: the end of the run; must not wait for anything

The monitor imports these files at start under ``python -I -S``, so they use the standard library only and
none of its heavy modules (no ``re``, ``json``, ``typing``, ``dataclasses``, ``subprocess``, ``socket``): each
costs memory and start time.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    class Collector(Protocol):
        """One source. ``sample`` raises only when something broke; "nothing to report" is a key left out."""

        name: str

        def sample(self, tick: Tick) -> None: ...

    Probe = Callable[["Scope"], Collector | None]

MIB = 1024.0 * 1024.0
GIB = 1024.0 * MIB
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Absent(Exception):
    """Raised by a probe: this machine has no such thing. The text tells why those numbers are missing."""


class Scope:
    """What to watch, and where to look for it.

    Args:
        host_root: folder that holds the host's ``proc`` and ``sys`` ("" = this machine's own root).
        pids: the processes whose trees are watched; a live list, the monitor appends when another rank joins.
        process_tree: watch descendants too (data-loader workers), not just ``pids``.
        disk_paths: file systems to report, as the user names them.
        interval_s: the sampling interval, for sources that choose between cheap and thorough by it.
        options: the settings that concern single sources, by name; those not set may be missing.

    ``site_folders`` is where the training's installed packages lie, for sources that need a vendor's library;
    whoever asks the sources fills it in. ``whole_machine`` means that there is no run, and devices that only
    count when the run uses them are to be shown as well.

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
        """Where an absolute path of the host lies for us."""
        return self.host_root + absolute


class Tick:
    """One sampling moment and what was read at it.

    Gauges are levels. Counters are the source's own running totals, whatever they started at: the monitor
    subtracts each one's first value, so that a stored counter starts at 0 with the run, and it alone knows
    about baselines.

    Events are things that happened, for the run's list of events: objects with ``name``, ``level`` (``info``,
    ``warning``, ``error``), ``text`` for a person, and whatever else belongs to it.

    Args:
        mono_s: monotonic clock of this moment in seconds; intervals are differences of it.
    """

    __slots__ = ("counters", "events", "gauges", "mono_s")

    def __init__(self, mono_s: float) -> None:
        self.mono_s = mono_s
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}
        self.events: list[dict[str, object]] = []


# Half a per cent early is due: the jitter of a 1 s clock would make 6 s of every 5.
EARLY = 0.995


class Every:
    """Says at most once in `seconds` that it is time: for sources that cost much or hardly change.

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
        if mono_s < self._next_s:
            return False
        self._next_s = mono_s + self.seconds * EARLY
        return True


# A seq_file (`/proc/net/dev`, `/proc/diskstats`) hands out at most a page a read, cut at a line's end. A read
# shorter than this is therefore a whole file; a longer one is read on until the kernel says it is over, which
# costs one more system call.
_WHOLE_BELOW = 3500
_READ_SIZE = 1 << 16


class PseudoFile:
    """A /proc or /sys file kept open and read again and again from its start.

    Keeping the descriptor saves open+close, 4 µs a read; ``pread`` at 0 makes the kernel produce the text
    anew. Missing or forbidden files raise OSError at construction, so that a probe can tell.

    Example:
        >>> PseudoFile("/proc/loadavg").read()
        b'0.10 0.20 0.30 1/123 4567\\n'
    """

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def read(self) -> bytes:
        """The whole file as it is now."""
        data = os.pread(self.fd, _READ_SIZE, 0)
        if len(data) < _WHOLE_BELOW:
            return data
        while more := os.pread(self.fd, _READ_SIZE, len(data)):
            data += more
        return data

    def read_start(self, size: int = 4096) -> bytes:
        """The beginning of a file that may be long, cut anywhere: the kernel need not produce the rest."""
        return os.pread(self.fd, size, 0)

    def close(self) -> None:
        os.close(self.fd)


def open_if_there(path: str) -> PseudoFile | None:
    """A PseudoFile that has been read once, or None where that fails: missing, forbidden, or switched off."""
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


def read_text(path: str) -> str | None:
    """A small file's text without the newline at its end, or None where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        return os.read(fd, 65536).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return None
    finally:
        os.close(fd)
