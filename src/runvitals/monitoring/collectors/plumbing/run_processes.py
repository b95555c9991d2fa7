"""The processes of the run, for collectors of what each process uses of a device."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.plumbing.process_tree import ProcessTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.monitoring.collectors.base import Scope

UNKNOWN_SUM = "the driver does not report the memory of every process"


class RunProcesses:
    """List the attached processes and all their descendants.

    Only the attached ones without procfs, or if the run's settings exclude descendants.

    Args:
        proc: path of procfs. The ids in ``scope.pids`` are of our own PID namespace, so this is not below the
            host root.
        excluded: a process that never counts; by default this one, the monitor.

    Example:
        >>> processes = RunProcesses(scope)
        >>> processes.pids(mono_s)
        {1234, 1240}
    """

    __slots__ = ("_members", "_proc", "_roots", "_scope", "_tree")

    def __init__(self, scope: Scope, proc: str = "/proc", excluded: int | None = None) -> None:
        self._scope = scope
        self._proc = proc
        self._roots: set[int] = set()
        self._members: set[int] = set()
        self._tree: ProcessTree | None = None
        if scope.process_tree:
            try:
                self._tree = ProcessTree(proc, os.getpid() if excluded is None else excluded)
            except OSError:  # not Linux, or a sandbox: use the attached processes only
                self._tree = None

    def pids(self, mono_s: float) -> set[int]:
        """Return the ids of those that are alive. Costs 2 µs, plus 2 µs for each process."""
        attached = set(self._scope.pids)
        if self._tree is None:
            return attached
        members = self._members = {pid for pid in self._members | attached if self._is_there(pid)}
        joined = attached - self._roots
        if joined:
            self._roots |= joined
            members.update(pid for pid, _ in self._tree.descendants_of(joined, members))
        members.update(pid for pid, _ in self._tree.newcomers(members, mono_s))
        return set(members)

    def _is_there(self, pid: int) -> bool:
        return os.path.exists(f"{self._proc}/{pid}")


def total_of(sizes: Iterable[float | None]) -> float | None:
    """Return the sum; None if one of them is unknown: the sum of the others would look complete."""
    total = 0.0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total
