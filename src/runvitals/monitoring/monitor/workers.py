"""The workers of a run: another process of the run has started them, and its end decides.

Such are the processes of a pool that call `init()` with the id of the run. The ranks of a launcher are none:
the launcher is the command of the run at most, and may hide how they ended.
"""

from __future__ import annotations

from runvitals.model.ending import ProcessExit
from runvitals.model.state import host_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from runvitals.model.ending import Ending
    from runvitals.monitoring.monitor.watched_processes import WatchedProcess


class EarlierProcess:
    """A process of the run that a previous monitor watched.

    Args:
        exit: how it ended, as far as that monitor knew.
    """

    __slots__ = ("exit", "pid", "role")

    def __init__(self, pid: int, role: str, exit: ProcessExit) -> None:
        self.pid = pid
        self.role = role
        self.exit = exit


def ending_of(
    processes: Sequence[WatchedProcess], earlier: Iterable[EarlierProcess], stop_requested: bool
) -> Ending:
    """Return the ending of a host whose processes are all over.

    Args:
        processes: those that this monitor has watched.
        earlier: processes of a previous monitor. One counts only if it has started one of `processes`.
        stop_requested: whether somebody asked the run to stop.
    """
    processes_by_role: dict[tuple[int, str], WatchedProcess | EarlierProcess] = {
        (process.pid, process.role): process for process in earlier if process.exit.known
    }
    processes_by_role.update({(process.pid, process.role): process for process in processes})
    exits: list[ProcessExit] = []
    workers: list[ProcessExit] = []
    mains: set[int] = set()  # of the previous monitor
    for process in processes:
        main = _main_of(process, processes_by_role)
        if main is None:
            exits.append(process.exit)
            continue
        workers.append(process.exit)
        if isinstance(main, EarlierProcess) and main.pid not in mains:
            mains.add(main.pid)
            exits.append(main.exit)
    return host_ending(exits, stop_requested, workers)


def _main_of(
    process: WatchedProcess, processes_by_role: Mapping[tuple[int, str], WatchedProcess | EarlierProcess]
) -> WatchedProcess | EarlierProcess | None:
    """Return the process of the run that has started another one: the command only as a pool's parent."""
    parent = process.about.get("parent")
    if parent is not None and (parent, "command") in processes_by_role:
        return processes_by_role[parent, "command"]
    pids = process.ancestors if parent is None else [parent, *process.ancestors]
    return next(
        (processes_by_role[pid, "train"] for pid in pids if (pid, "train") in processes_by_role), None
    )
