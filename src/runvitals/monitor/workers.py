"""Which processes of a run are workers: another process of the run has started them, and its end decides.

Such are the processes of a pool that call `init()` with the id of the run. The ranks of a launcher are none:
the launcher is the command of the run at most, and may hide how they ended.
"""

from __future__ import annotations

from runvitals.model.ending import ProcessExit
from runvitals.model.state import host_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runvitals.model.ending import Ending
    from runvitals.monitor.watched_processes import WatchedProcess

_MOST_ANCESTORS = 32


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
    """The ending of a host whose processes are all over.

    Args:
        earlier: processes of a previous monitor. One counts only if it has started one of `processes`.
    """
    exits, workers = [], []
    known = [*processes, *(process for process in earlier if process.exit.known)]
    for process in processes:
        main = next((other for other in known if other is not process and _has_started(other, process)), None)
        if main is None:
            exits.append(process.exit)
            continue
        workers.append(process.exit)
        if isinstance(main, EarlierProcess):
            exits.append(main.exit)
    return host_ending(exits, stop_requested, workers)


def _has_started(other: WatchedProcess | EarlierProcess, process: WatchedProcess) -> bool:
    if other.pid == process.about.get("parent"):
        return True
    return other.role == "train" and other.pid in process.ancestors


def ancestors(pid: int) -> list[int]:
    """The processes that have started a process, from its parent on; empty where there is no /proc."""
    found: list[int] = []
    while pid > 1 and len(found) < _MOST_ANCESTORS:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            break
        found.append(pid)
    return found
