"""The processes that use most CPU and memory."""

from __future__ import annotations

import os
from dataclasses import dataclass

from runvitals.collectors.base import PAGE, TICKS_PER_SECOND, read_text
from runvitals.environment import redaction

_MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process: CPU in percent of one core, resident memory, and its command with secrets redacted."""

    pid: int
    user: str
    cpu_percent: float
    rss_mib: float
    command: str


class ProcessList:
    """The processes in /proc. Reading them costs 20 µs per process.

    Args:
        proc: mount point of procfs. Without procfs the list is empty.

    Example:
        >>> processes = ProcessList("/proc")
        >>> processes.heaviest(3, 100.0)      # the first call sorts by memory: CPU needs two
        [ProcessLine(pid=4711, user='anna', cpu_percent=0.0, rss_mib=5123.4, command='python train.py'), …]
    """

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._ticks: dict[int, int] = {}
        self._mono_s = 0.0
        self._users: dict[int, str] = {}

    def heaviest(self, count: int, mono_s: float) -> list[ProcessLine]:
        """The `count` processes that used the most CPU since the last call, then the most memory."""
        seconds = mono_s - self._mono_s if self._ticks else 0.0
        found: list[tuple[float, int, int]] = []
        ticks: dict[int, int] = {}
        for pid in self._pids():
            text = read_text(f"{self._proc}/{pid}/stat") or ""
            fields = text.rpartition(")")[2].split()
            if len(fields) < 22:
                continue  # it has just ended
            ticks[pid] = int(fields[11]) + int(fields[12])
            spent = ticks[pid] - self._ticks.get(pid, ticks[pid])
            share = spent / TICKS_PER_SECOND / seconds * 100.0 if seconds > 0.0 else 0.0
            found.append((share, int(fields[21]), pid))
        self._ticks, self._mono_s = ticks, mono_s
        found.sort(reverse=True)
        return [self._process(pid, share, pages) for share, pages, pid in found[:count]]

    def _pids(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:  # macOS, Windows
            return []

    def _process(self, pid: int, share: float, pages: int) -> ProcessLine:
        words = (read_text(f"{self._proc}/{pid}/cmdline") or "").rstrip("\0")
        command = " ".join(redaction.command(words.split("\0"))) if words else ""
        name = command or f"[{read_text(f'{self._proc}/{pid}/comm') or '?'}]"
        return ProcessLine(pid, self._user(pid), share, pages * PAGE / _MIB, name)

    def _user(self, pid: int) -> str:
        try:
            uid = os.stat(f"{self._proc}/{pid}").st_uid
        except OSError:
            return "?"
        if not self._users:
            for line in (read_text("/etc/passwd") or "").split("\n"):
                fields = line.split(":")
                if len(fields) > 2 and fields[2].isdigit():
                    self._users.setdefault(int(fields[2]), fields[0])
        return self._users.get(uid, str(uid))
