"""The processes of this machine: all, or those that use most CPU and memory."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from runvitals.monitoring.collectors.base import PAGE, TICKS_PER_SECOND, read_text
from runvitals.monitoring.environment import redaction

_MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process: CPU in percent of one core, resident memory, and its command with secrets redacted.

    Args:
        parent: the PID of the process that started it.
        state: `R` running, `S` sleeping, `D` waiting for a device …
        cpu_s: CPU time so far.
        started: when it started, in ticks since the boot: with the PID it names a process for ever.
    """

    pid: int
    user: str
    cpu_percent: float
    rss_mib: float
    command: str
    parent: int = 0
    state: str = ""
    cpu_s: float = 0.0
    started: int = 0


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
        self._descriptions: dict[tuple[int, int], tuple[str, str]] = {}

    def everything(self, mono_s: float) -> list[ProcessLine]:
        """Return all processes, unordered, with the CPU that they used since the last call."""
        lines, described = [], self._descriptions
        self._descriptions = {}
        for pid, fields, share in self._read(mono_s):
            key = (pid, int(fields[19]))
            words = described[key] if key in described else (self._user(pid), self._command(pid))
            self._descriptions[key] = words
            lines.append(self._line(pid, fields, share, *words))
        return lines

    def heaviest(self, count: int, mono_s: float) -> list[ProcessLine]:
        """Return the `count` processes that used the most CPU since the last call, then the most memory."""
        processes = self._read(mono_s)
        processes.sort(key=lambda process: (process[2], int(process[1][21]), process[0]), reverse=True)
        return [
            self._line(pid, fields, share, self._user(pid), self._command(pid))
            for pid, fields, share in processes[:count]
        ]

    def _read(self, mono_s: float) -> list[tuple[int, list[str], float]]:
        """Return PID, `stat` fields from the state on, and CPU since the last call, of each process."""
        seconds = mono_s - self._mono_s if self._ticks else 0.0
        processes: list[tuple[int, list[str], float]] = []
        ticks: dict[int, int] = {}
        for pid in self._pids():
            text = read_text(f"{self._proc}/{pid}/stat") or ""
            fields = text.rpartition(")")[2].split()
            if len(fields) < 22:
                continue  # it has just ended
            ticks[pid] = int(fields[11]) + int(fields[12])
            spent = ticks[pid] - self._ticks.get(pid, ticks[pid])
            share = spent / TICKS_PER_SECOND / seconds * 100.0 if seconds > 0.0 else 0.0
            processes.append((pid, fields, share))
        self._ticks, self._mono_s = ticks, mono_s
        return processes

    def _pids(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:  # macOS, Windows
            return []

    def _line(self, pid: int, fields: list[str], share: float, user: str, command: str) -> ProcessLine:
        return ProcessLine(
            pid,
            user,
            share,
            int(fields[21]) * PAGE / _MIB,
            command,
            parent=int(fields[1]),
            state=fields[0],
            cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND,
            started=int(fields[19]),
        )

    def _command(self, pid: int) -> str:
        words = (read_text(f"{self._proc}/{pid}/cmdline") or "").rstrip("\0")
        command = " ".join(redaction.command(words.split("\0"))) if words else ""
        return command or f"[{(read_text(f'{self._proc}/{pid}/comm') or '?').rstrip()}]"

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


def kill(process: ProcessLine, number: signal.Signals, proc: str = "/proc") -> None:
    """Send a signal to a listed process, and to no other that got its PID since.

    Raises:
        ProcessLookupError: it has ended.
        PermissionError: it belongs to another user.
    """
    handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    try:
        fields = (read_text(f"{proc}/{process.pid}/stat") or "").rpartition(")")[2].split()
        if len(fields) < 20 or int(fields[19]) != process.started:
            raise ProcessLookupError(f"process {process.pid} has ended")
        if handle is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    finally:
        if handle is not None:
            os.close(handle)
