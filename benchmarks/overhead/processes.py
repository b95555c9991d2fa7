"""The processes of a tool, their CPU time and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MARKER = "RUNVITALS_BENCHMARK_SESSION"


def cpu_ns(pid: int) -> int:
    """CPU time (user and system, ns) of all threads of a process since its start, without children.

    Reads the kernel's CPU clock of the process, whose id is ~pid except for the three lowest bits. It is
    exact to the nanosecond, while /proc/PID/stat counts in steps of 10 ms.

    Raises:
        ProcessLookupError: no such process.
    """
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError as error:
        raise ProcessLookupError(f"no process {pid}") from error


def marked(session: str) -> list[int]:
    """All processes with `RUNVITALS_BENCHMARK_SESSION` set to `session`, which descendants inherit, including
    those that left the process tree.
    """
    marker = f"{MARKER}={session}".encode()
    return [pid for pid in _pids() if marker in _read(pid, "environ").split(b"\0")]


def command(pid: int) -> list[str]:
    """The command line of a process; empty if it has ended."""
    return _read(pid, "cmdline").decode(errors="replace").split("\0")[:-1]


def thread_count(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


@dataclass(frozen=True)
class Memory:
    """Memory of one or more processes in MiB: resident, proportional (PSS) and unshared (USS)."""

    rss: float
    pss: float
    uss: float

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.rss + other.rss, self.pss + other.pss, self.uss + other.uss)

    def __sub__(self, other: Memory) -> Memory:
        return Memory(self.rss - other.rss, self.pss - other.pss, self.uss - other.uss)


def memory(pids: Iterable[int]) -> Memory:
    """The memory of all these processes together, from /proc/PID/smaps_rollup."""
    total = Memory(0.0, 0.0, 0.0)
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        mib = {name: int(rest.split()[0]) / 1024 for name, _, rest in (line.partition(":") for line in lines)}
        total += Memory(mib["Rss"], mib["Pss"], mib["Private_Clean"] + mib["Private_Dirty"])
    return total


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
