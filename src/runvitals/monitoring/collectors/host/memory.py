"""Memory of the host (/proc/meminfo) and of our cgroup.

The cgroup's is relative to the smallest limit that applies to us.

A container's available memory is its limit minus its *working set*: its memory without the file cache that
the kernel drops first (the figure by which Kubernetes evicts). So "used" never means "filled with cache".
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import MIB, NOTHING_THERE, Absent, Every, PseudoFile, open_if_there
from runvitals.monitoring.collectors.plumbing.cgroup import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.plumbing.cgroup import Cgroup, Limit

# Limits of a running container can be changed, which is rare; reading them costs 10 µs a level.
LIMITS_EVERY_S = 60.0
# memory.stat makes the kernel add up the counts of all CPUs: 12 µs for 2 CPUs and far more for 200.
LIMITED_DETAILS_EVERY_S = 1.0
DETAILS_EVERY_S = 10.0
NO_LIMIT = f"{NOTHING_THERE}: no cgroup limits the memory below that of the host"
NO_HIGH = f"{NOTHING_THERE}: no cgroup slows down above some use (memory.high)"
NO_USE = f"{NOTHING_THERE}: no cgroup counts the memory"


def probe(scope: Scope) -> HostMemory:
    """Make the collector; raise Absent if the machine lacks the source."""
    try:
        return HostMemory(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class HostMemory:
    """The memory of the host and of our cgroup.

    `memory_percent`, `proc.memory.availableMB`, `memory.usedMB`, `swap.used` … ``facts`` name the
    cgroups that set the limits.
    """

    name = "memory"

    def __init__(self, scope: Scope) -> None:
        self.absent: dict[str, str] = {}
        self.facts: dict[str, object] | None = None
        self._meminfo = Meminfo(scope)
        self._cgroup = locate(scope)
        self._limit: Limit | None = None
        self._high: Limit | None = None
        self._limits = Every(LIMITS_EVERY_S)
        self._working_set = WorkingSet.of(self._cgroup, None)
        self._details = Every(DETAILS_EVERY_S)

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        gauges = tick.gauges
        info = self._meminfo
        info.read()
        if self._limits.due(tick.mono_s):
            self._read_limit()
            self._explain("")
        used = info.total - info.available
        gauges["host.memory_percent"] = used * 100.0 / info.total
        gauges["memory.usedMB"] = used / MIB
        gauges["memory.cachedMB"] = info.cached / MIB
        if info.swap_total:
            gauges["swap.used"] = info.swap_total - info.swap_free
            gauges["swap.used_percent"] = (info.swap_total - info.swap_free) * 100.0 / info.swap_total
        self._sample_cgroup(tick, float(info.available))

    def _sample_cgroup(self, tick: Tick, available: float) -> None:
        """Write what is left for us: of the host's memory, or of our cgroup's limit."""
        gauges = tick.gauges
        percent: float | None = gauges["host.memory_percent"]
        available_bytes: float | None = available
        details = self._details.due(tick.mono_s)
        limit, working_set = self._limit, self._working_set
        # Without a limit nothing depends on the working set: write it only when it is read with its details.
        if working_set is not None and (details or limit is not None):
            try:
                used = working_set.read(details)
            except OSError as error:  # our cgroup was removed: only the host's numbers remain
                self._explain(error.strerror)
                return
            gauges["cgroup.memory.workingSetMB"] = used / MIB
            if limit is not None:
                percent = used * 100.0 / limit.value if limit.value else None
                available_bytes = min(available, max(0.0, limit.value - used))
        elif limit is not None:
            percent = available_bytes = None  # those of the host would look like those of the limit
        if limit is not None:
            gauges["cgroup.memory.limitMB"] = limit.value / MIB
        if self._high is not None:
            gauges["cgroup.memory.highMB"] = self._high.value / MIB
        if percent is not None:
            gauges["memory_percent"] = percent
        if available_bytes is not None:
            gauges["proc.memory.availableMB"] = available_bytes / MIB

    def _read_limit(self) -> None:
        limit = self._cgroup.memory_limit()
        if (limit and limit.folder) != (self._limit and self._limit.folder):
            if self._working_set is not None:
                self._working_set.close()
            self._working_set = WorkingSet.of(self._cgroup, limit)
            self._details = Every(DETAILS_EVERY_S if limit is None else LIMITED_DETAILS_EVERY_S)
        self._limit = limit
        self._high = self._cgroup.memory_high()
        before = self.facts or {}
        facts: dict[str, object] = {
            name: None if each is None else {"bytes": int(each.value), "set_by": each.folder}
            for name, each in (("cgroup_memory_limit", limit), ("cgroup_memory_high", self._high))
            if each is not None or name in before  # None: it was removed
        }
        if facts != before:
            self.facts = facts

    def _explain(self, failure: str | None) -> None:
        """Update `absent`; replace the object only if it has changed.

        Args:
            failure: why the use of the cgroup cannot be read any more.
        """
        absent: dict[str, str] = {}
        if not self._meminfo.swap_total:
            absent.update(dict.fromkeys(("swap.used", "swap.used_percent"), f"{NOTHING_THERE}: no swap"))
        if self._limit is None:
            absent["cgroup.memory.limitMB"] = NO_LIMIT
        if self._high is None:
            absent["cgroup.memory.highMB"] = NO_HIGH
        of_limit = ("memory_percent", "proc.memory.availableMB")
        if self._working_set is None:
            absent["cgroup.memory.workingSetMB"] = NO_USE
        if failure or (self._working_set is None and self._limit is not None):
            why = f"the use of the cgroup cannot be read: {failure or 'it has no memory.current'}"
            absent.update(dict.fromkeys(("cgroup.memory.workingSetMB", *of_limit), why))
        elif self._limit is not None and not self._limit.value:
            absent["memory_percent"] = f"the limit is 0 bytes (set by {self._limit.folder})"
        if absent != self.absent:
            self.absent = absent


class Meminfo:
    """The fields of /proc/meminfo that are used, in bytes. A read takes 10 µs, mostly in the kernel.

    Raises:
        OSError: the file cannot be read.
        Absent: it has no MemTotal or neither MemAvailable nor MemFree.
    """

    def __init__(self, scope: Scope) -> None:
        self._file = PseudoFile(scope.path("/proc/meminfo"))
        # The order of the words does not change while the kernel runs, so each position is determined once.
        words = self._file.read().split()
        self._tells_available = b"MemAvailable:" in words
        if b"MemTotal:" not in words or not (self._tells_available or b"MemFree:" in words):
            raise Absent(f"{self._file.path} lacks MemTotal, or both MemAvailable and MemFree")
        fields = (
            b"MemTotal:",
            b"MemAvailable:",
            b"Buffers:",
            b"Cached:",
            b"SReclaimable:",
            b"SwapTotal:",
            b"SwapFree:",
            b"MemFree:",
            b"Shmem:",
        )
        self._positions = [words.index(name) + 1 if name in words else None for name in fields]
        self._last = max(position for position in self._positions if position is not None) + 1
        self.total = self.available = self.cached = self.swap_total = self.swap_free = 0
        self.read()

    def read(self) -> None:
        """Read the file again."""
        words = self._file.read().split(None, self._last)
        total, available, buffers, page_cache, slab, swap_total, swap_free, free, shared = [
            int(words[position]) * 1024 if position is not None else 0 for position in self._positions
        ]
        self.cached = buffers + page_cache + slab
        self.total, self.swap_total, self.swap_free = total, swap_total, swap_free
        # Before kernel 3.14 there is no MemAvailable: use free memory, and caches without shared memory,
        # which is counted as cache and cannot be dropped.
        self.available = (
            available if self._tells_available else min(total, free + max(0, self.cached - shared))
        )


class WorkingSet:
    """Read a cgroup's memory without the part that the kernel drops first, in bytes.

    max(usage - inactive file pages, anonymous pages).
    """

    __slots__ = ("_anonymous", "_anonymous_key", "_inactive", "_inactive_key", "_stat", "_usage")

    def __init__(self, version: int, folder: str) -> None:
        self._usage = PseudoFile(folder + ("/memory.current" if version == 2 else "/memory.usage_in_bytes"))
        # Without it, the file cache counts as used.
        self._stat = open_if_there(folder + "/memory.stat")
        self._inactive_key = b"\ninactive_file " if version == 2 else b"\ntotal_inactive_file "
        self._anonymous_key = b"\nanon " if version == 2 else b"\ntotal_rss "
        self._inactive = self._anonymous = 0

    @classmethod
    def of(cls, cgroup: Cgroup, limit: Limit | None) -> WorkingSet | None:
        """Read the working set of the folder with the limit.

        Everything in that folder counts towards the limit. Without a limit, that of our own folder.
        """
        if cgroup.memory is None:
            return None
        folder = limit.folder if limit is not None else cgroup.memory.own
        try:
            working_set = cls(cgroup.memory.version, folder)
            working_set.read(details=True)
        except OSError:  # the root of the v2 tree has no such files: only the host's numbers exist
            return None
        return working_set

    def read(self, details: bool) -> int:
        """Return the working set in bytes.

        The usage is current; what is subtracted from it was read at the last call with ``details``.
        """
        usage = int(self._usage.read())
        if details and self._stat is not None:
            stat = b"\n" + self._stat.read()
            self._inactive = _number_after(stat, self._inactive_key)
            self._anonymous = _number_after(stat, self._anonymous_key)
        return max(usage - self._inactive, min(usage, self._anonymous))

    def close(self) -> None:
        """Release what is open."""
        self._usage.close()
        if self._stat is not None:
            self._stat.close()


def _number_after(data: bytes, label: bytes) -> int:
    start = data.find(label)
    if start < 0:
        return 0
    start += len(label)
    return int(data[start : data.index(b"\n", start)])
