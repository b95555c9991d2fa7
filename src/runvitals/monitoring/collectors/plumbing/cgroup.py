"""The cgroups of a process (v1, v2, or both), and the limits that apply to it.

A limit may be set on any ancestor (a systemd slice, a Slurm job); the smallest one applies. In a container
the trees end at the container's folder: its ancestors and their limits are not visible.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import open_if_there, read_text
from runvitals.monitoring.collectors.plumbing.mounts import read_mounts, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import PseudoFile, Scope
    from runvitals.monitoring.collectors.plumbing.mounts import Mount


# v1 shows "no limit" as a number near 2⁶³.
UNLIMITED = float(1 << 60)


class Controller:
    """The folders of one resource, from the process's cgroup up to the highest visible ancestor.

    Args:
        version: 1 or 2; file names depend on it.
        folders: at least one; the first is the process's cgroup.
    """

    __slots__ = ("folders", "version")

    def __init__(self, version: int, folders: Sequence[str]) -> None:
        self.version = version
        self.folders = tuple(folders)

    @property
    def own(self) -> str:
        """The folder of the process's own cgroup."""
        return self.folders[0]


class Limit:
    """The smallest limit of a cgroup and its ancestors, in bytes or CPUs, and the folder that sets it."""

    __slots__ = ("folder", "value")

    def __init__(self, value: float, folder: str) -> None:
        self.value = value
        self.folder = folder


class Cgroup:
    """The controllers of a process. A controller that is not mounted is None.

    Args:
        pressure: the unified tree: all its folders have pressure files, with any set of controllers.
        total_memory: memory of the machine in bytes; a higher limit does not count.

    Example:
        >>> cgroup = locate(Scope())
        >>> limit = cgroup.cpu_limit()
        >>> limit and limit.value
        2.0
    """

    __slots__ = ("cpu", "cpuset", "memory", "pressure", "total_memory")

    def __init__(
        self,
        cpu: Controller | None = None,
        cpuset: Controller | None = None,
        memory: Controller | None = None,
        pressure: Controller | None = None,
        total_memory: float = float("inf"),
    ) -> None:
        self.total_memory = total_memory
        self.cpu = cpu
        self.cpuset = cpuset
        self.memory = memory
        self.pressure = pressure

    def memory_limit(self) -> Limit | None:
        """Return the limit in bytes, which may be 0; None if all exceed the machine's memory."""
        return self._memory("memory.max", "memory.limit_in_bytes")

    def memory_high(self) -> Limit | None:
        """Return the usage in bytes above which the kernel slows the processes down; None if none is set."""
        return self._memory("memory.high", None)

    def _memory(self, file: str, file_of_v1: str | None) -> Limit | None:
        memory = self.memory
        name = None if memory is None else file if memory.version == 2 else file_of_v1
        if memory is None or name is None:
            return None
        best: Limit | None = None
        for folder in memory.folders:
            text = read_text(f"{folder}/{name}")
            if text is None or not text.isdigit():
                continue
            value = float(text)
            if value < (best.value if best else min(self.total_memory, UNLIMITED)):
                best = Limit(value, folder)
        return best

    def cpu_limit(self) -> Limit | None:
        """Return the quota in CPUs (1.5: one and a half), or None if none is set."""
        if self.cpu is None:
            return None
        best: Limit | None = None
        for folder in self.cpu.folders:
            value = _quota(folder, self.cpu.version)
            if value is not None and (best is None or value < best.value):
                best = Limit(value, folder)
        return best

    def allowed_cpus(self) -> frozenset[int] | None:
        """Return the effective CPUs of the cpuset, within its ancestors' limits, or None without a cpuset."""
        if self.cpuset is None:
            return None
        names = (
            ("cpuset.cpus.effective",)
            if self.cpuset.version == 2
            else ("cpuset.effective_cpus", "cpuset.cpus")
        )
        for folder in self.cpuset.folders:
            for name in names:
                cpus = parse_cpu_list(read_text(f"{folder}/{name}") or "")
                if cpus:
                    return cpus
        return None


def locate(scope: Scope) -> Cgroup:
    """Return the cgroup of the first watched process, else of this process, which runs in the same one."""
    pid = str(scope.pids[0]) if scope.pids and not scope.host_root else "self"
    text = read_text(scope.path(f"/proc/{pid}/cgroup")) or read_text(scope.path("/proc/self/cgroup")) or ""
    mounts = read_mounts(scope)
    paths: dict[str, str] = {}
    for line in text.split("\n"):
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for name in names.split(","):
            paths["v2" if number == "0" and not names else name] = path
    unified = _find_unified(mounts, paths)
    return Cgroup(
        cpu=_v1(mounts, paths, "cpu") or _v2(unified, "cpu"),
        cpuset=_v1(mounts, paths, "cpuset") or _v2(unified, "cpuset"),
        memory=_v1(mounts, paths, "memory") or _v2(unified, "memory"),
        pressure=unified,
        total_memory=total_memory(scope),
    )


def available_cpus(scope: Scope, cgroup: Cgroup) -> frozenset[int] | None:
    """Return the CPUs that the watched processes may run on, or None if that is unknown.

    The affinity of a process is a subset of its cpuset, so on this machine affinity includes both. With
    another host root only the cpuset can be read.
    """
    if scope.host_root:
        return cgroup.allowed_cpus()
    cpus: frozenset[int] = frozenset()
    for pid in scope.pids or (0,):
        try:
            cpus |= os.sched_getaffinity(pid)
        except ProcessLookupError:  # it has exited
            continue
    return cpus or frozenset(os.sched_getaffinity(0))


def available_cpu_count(scope: Scope, cgroup: Cgroup) -> float:
    """Count the CPUs that the watched processes can use: the minimum of affinity, cpuset and quota."""
    cpus = available_cpus(scope, cgroup)
    count = float(len(cpus) if cpus else os.cpu_count() or 1)
    quota = cgroup.cpu_limit()
    return min(count, quota.value) if quota else count


def parse_cpu_list(text: str) -> frozenset[int]:
    """Parse the kernel's CPU list format.

    >>> sorted(parse_cpu_list("0-2,8"))
    [0, 1, 2, 8]
    """
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not dash):
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def total_memory(scope: Scope) -> float:
    """Return the machine's memory in bytes; infinity if /proc/meminfo cannot be read.

    >>> total_memory(Scope()) / 2**30
    23.5
    """
    words = (read_text(scope.path("/proc/meminfo")) or "").split(None, 2)
    return float(words[1]) * 1024.0 if len(words) > 1 and words[0] == "MemTotal:" else float("inf")


class OomKills:
    """Read how many processes the kernel's OOM killer has killed.

    In our cgroup if it has a counter, else on the whole host (``host_wide``).

    The count is the kernel's and does not start at 0. The monitor reads it at start, and again when SIGKILL
    has ended a process.

    Example:
        >>> kills = OomKills(Scope(pids=[1234]))
        >>> kills.read()
        0
    """

    __slots__ = ("_file", "host_wide")

    def __init__(self, scope: Scope) -> None:
        cgroup = locate(scope)
        self.host_wide = False
        self._file = _kills_file(cgroup)
        if self.read() is None:
            self.host_wide = True
            self._file = open_if_there(scope.path("/proc/vmstat"))

    def read(self) -> int | None:
        """Return the current count; None if neither the cgroup nor the kernel has one."""
        if self._file is None:
            return None
        data = b"\n" + self._file.read()
        start = data.find(b"\noom_kill ")
        return int(data[start + 10 :].split(None, 1)[0]) if start >= 0 else None


def _kills_file(cgroup: Cgroup) -> PseudoFile | None:
    memory = cgroup.memory
    if memory is None:
        return None
    # v1 counts a kill only in the victim's cgroup. v2 counts it in all ancestors as well: the cgroup that has
    # the limit counts the kills of every rank of the job.
    if memory.version == 1:
        return open_if_there(memory.own + "/memory.oom_control")
    limit = cgroup.memory_limit()
    return open_if_there((limit.folder if limit else memory.own) + "/memory.events")


def _quota(folder: str, version: int) -> float | None:
    if version == 2:
        quota, _, period = (read_text(folder + "/cpu.max") or "").partition(" ")
    else:
        quota = read_text(folder + "/cpu.cfs_quota_us") or ""
        period = read_text(folder + "/cpu.cfs_period_us") or ""
    # "max" and "-1" mean that there is no quota.
    if not quota.isdigit() or not period.isdigit() or int(quota) == 0 or int(period) == 0:
        return None
    return int(quota) / int(period)


def _v1(mounts: Sequence[Mount], paths: dict[str, str], name: str) -> Controller | None:
    if name not in paths:
        return None
    for mount in mounts:
        if mount.kind == "cgroup" and name in mount.options:
            return _controller(1, mount, paths[name])
    return None


def _find_unified(mounts: Sequence[Mount], paths: dict[str, str]) -> Controller | None:
    if "v2" not in paths:
        return None
    for mount in mounts:
        if mount.kind == "cgroup2":
            return _controller(2, mount, paths["v2"])
    return None


def _v2(unified: Controller | None, name: str) -> Controller | None:
    """Return the unified tree, if it has this controller.

    It is also mounted beside v1 trees, with a line `0::/` and no controllers.
    """
    if unified is None:
        return None
    controllers = read_text(unified.folders[-1] + "/cgroup.controllers") or ""
    return unified if name in controllers.split() else None


def _controller(version: int, mount: Mount, path: str) -> Controller | None:
    # The mount may show only a part of the tree (a container's folder), while the path starts at the root of
    # another namespace: then only the mount point is visible.
    relative = path[len(mount.root.rstrip("/")) :] if within(path, mount.root) else ""
    parts = [part for part in relative.split("/") if part]
    if ".." in parts:
        parts = []
    folders = ["/".join([mount.point.rstrip("/"), *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    return Controller(version, folders) if folders else None
