"""Select the run's processes in a report of neuron-monitor."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.trainium.readings import cores_of, source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class RunProcessFilter:
    """Identifies the run's processes by their pid, or by neuron-monitor's tag.

    neuron-monitor reports the host's pid, which is not valid in a container. The tag of a process is the pid
    in its own namespace, or the value of NEURON_PROCESS_TAG.

    Args:
        tag: the run's NEURON_PROCESS_TAG, "" if it is not set.
        proc: path of procfs in our PID namespace.

    ``processes`` lists all processes: pid, tag, whether it is the run's, and the cores it has used.
    ``unknown`` is their number if none is the run's.
    """

    __slots__ = ("_cores", "_proc", "_tag", "processes", "unknown")

    def __init__(self, tag: str, proc: str = "/proc") -> None:
        self._tag = tag
        self._proc = proc
        self._cores: dict[object, set[int]] = {}
        self.processes: list[dict[str, object]] = []
        self.unknown = 0

    def choose(self, processes: Iterable[dict[str, Any]], run: set[int]) -> list[dict[str, Any]]:
        """Return the processes that belong to the run.

        Args:
            processes: those of a report.
            run: pids of the run in our PID namespace.
        """
        own, listed = [], []
        cores: dict[object, set[int]] = {}
        for process in processes:
            is_own = self._is_own(process, run)
            if is_own:
                own.append(process)
            used_cores = cores[source(process)] = self._cores.get(source(process), set()) | set(
                cores_of(process)
            )
            fact: dict[str, object] = {name: process[name] for name in ("pid", "tag") if name in process}
            listed.append({**fact, "run": is_own, "cores": sorted(used_cores)})
        self._cores = cores
        self.processes = listed
        self.unknown = 0 if own else len(listed)
        return own

    @property
    def cores(self) -> set[int]:
        """The cores that the run has used."""
        indices: set[int] = set()
        for process in self.processes:
            cores = process["cores"]
            if process["run"] and isinstance(cores, list):
                indices.update(cores)
        return indices

    def _is_own(self, process: dict[str, Any], run: set[int]) -> bool:
        pid, tag = process.get("pid"), process.get("tag", "")
        if pid is None:  # of neuron-rtd, which serves all programs
            return False
        if pid in run or (self._tag and tag == self._tag):
            return True
        # If the host's pids are visible, another container's process 11 is not our process 11.
        return (
            tag.isdecimal()
            and tag.isascii()
            and int(tag) in run
            and not os.path.exists(f"{self._proc}/{pid}")
        )
