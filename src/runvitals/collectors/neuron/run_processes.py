"""Which of the processes in a report of neuron-monitor are the run's."""

from __future__ import annotations

import os

from runvitals.collectors.neuron.readings import cores_of, source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class RunProcessFilter:
    """Recognises the run's processes by their pid, or by what neuron-monitor calls their tag.

    neuron-monitor's pid is the host's. In a container we do not see that one; but the tag of a process is the
    pid that it has itself, or what NEURON_PROCESS_TAG says.

    Args:
        tag: the run's NEURON_PROCESS_TAG, "" where it is not set.
        proc: where procfs lies, with ids as ours are.

    ``processes`` is what is known of each: pid, tag, whether it is the run's, and the cores it has been seen
    on. ``unknown`` is how many there are when none is the run's.
    """

    __slots__ = ("_cores", "_proc", "_tag", "processes", "unknown")

    def __init__(self, tag: str, proc: str = "/proc") -> None:
        self._tag = tag
        self._proc = proc
        self._cores: dict[object, set[int]] = {}
        self.processes: list[dict[str, object]] = []
        self.unknown = 0

    def choose(self, processes: Iterable[dict[str, Any]], run: set[int]) -> list[dict[str, Any]]:
        """Those that are the run's.

        Args:
            run: pids of the run, as we see them.
        """
        own, told = [], []
        cores: dict[object, set[int]] = {}
        for process in processes:
            is_own = self._is_own(process, run)
            if is_own:
                own.append(process)
            seen = cores[source(process)] = self._cores.get(source(process), set()) | set(cores_of(process))
            fact: dict[str, object] = {name: process[name] for name in ("pid", "tag") if name in process}
            told.append({**fact, "run": is_own, "cores": sorted(seen)})
        self._cores = cores
        self.processes = told
        self.unknown = 0 if own else len(told)
        return own

    @property
    def cores(self) -> set[int]:
        """The cores that the run has been seen on."""
        found: set[int] = set()
        for process in self.processes:
            cores = process["cores"]
            if process["run"] and isinstance(cores, list):
                found.update(cores)
        return found

    def _is_own(self, process: dict[str, Any], run: set[int]) -> bool:
        pid, tag = process.get("pid"), process.get("tag", "")
        if pid is None:  # neuron-rtd's, which serves all
            return False
        if pid in run or (self._tag and tag == self._tag):
            return True
        # Where we see the host's pids, another container's process 11 is not our process 11.
        return (
            tag.isdecimal()
            and tag.isascii()
            and int(tag) in run
            and not os.path.exists(f"{self._proc}/{pid}")
        )
