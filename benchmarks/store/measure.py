"""Measures wall time, CPU time and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

Numbers = dict[str, float]


@dataclass
class Spent:
    """Time that a block took, in seconds."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


@contextmanager
def spent() -> Iterator[Spent]:
    """Measure the time that the block takes in this process."""
    time_spent = Spent()
    wall, cpu = time.perf_counter(), time.process_time()
    yield time_spent
    time_spent.wall_s, time_spent.cpu_s = time.perf_counter() - wall, time.process_time() - cpu


def repeated_ms(work: Callable[[], object], times: int = 15) -> float:
    """The median duration of several calls, in ms."""
    return float(np.median([once_ms(work) for _ in range(times)]))


def once_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def memory_mb(pid: int | str = "self") -> float:
    """Anonymous memory of a process, without pages of files."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/{pid}/status has no RssAnon")


def cpu_s(pid: int) -> float:
    """CPU time that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size(folder: str) -> int:
    """Disk usage of a folder, in bytes."""
    return sum(
        os.lstat(os.path.join(path, name)).st_blocks * 512
        for path, _, names in os.walk(folder)
        for name in names
    )


def drop_from_cache(folder: str) -> None:
    """Drop the files of a folder from the page cache, so that the next read is from disk."""
    for path, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(path, name), os.O_RDONLY)
            try:
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)
