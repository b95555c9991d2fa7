"""The processes of a run: the attached ones and all their descendants.

Scanning /proc for parents would cost 1 ms per hundred processes of the host. Instead this uses that the
kernel assigns PIDs in order and shows the last one in /proc/loadavg (1 µs). If it is unchanged, there is no
new process. If it is a little higher, only the PIDs in between are new. A process that was found stays a
member, even when its parent exits and init adopts it.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Every, PseudoFile, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

# Up to this many new PIDs are read one by one, 3 µs each. For more, /proc is listed, at most every 5 s.
FEW = 256
LISTING_EVERY_S = 5.0


class ProcessTree:
    """Finds a run's processes. Whether they are still alive is left to the reader of their files.

    Args:
        proc: path of procfs.
        excluded: a process that is left out with all its children (the monitor itself).

    Example:
        >>> tree = ProcessTree("/proc", excluded=os.getpid())
        >>> tree.descendants_of({1234}, {})        # all current ones
        [(1240, 1234)]
        >>> tree.newcomers({1234, 1240}, mono_s)   # those since the last call
        []
    """

    def __init__(self, proc: str, excluded: int) -> None:
        self._proc = proc
        self._live = proc == "/proc"  # its PIDs are valid for system calls
        self._sessions: set[int] = set()
        self._excluded = excluded
        self._loadavg = PseudoFile(proc + "/loadavg")
        self._listing = Every(LISTING_EVERY_S)
        self._last = self._last_pid()
        self._seen = b""  # the last PID in the file, up to which all were read

    def newcomers(self, members: Container[int], mono_s: float) -> list[tuple[int, int]]:
        """(PID, parent's PID) of the new processes since the last call, parents before children."""
        text = os.pread(self._loadavg.fd, 64, 0)
        last_pid = text[text.rfind(b" ") :]
        if last_pid == self._seen:
            return []
        last = int(last_pid)
        if 0 <= last - self._last <= FEW and last != 0:
            candidates: Iterable[int] = range(self._last + 1, last + 1)
        elif self._listing.due(mono_s):
            # The PIDs wrapped around (they start low again), or very many are new. If a sandbox does not show
            # the last PID (0), all are read.
            low, high = self._last, last
            candidates = [
                pid
                for pid in self._pids()
                if high == 0 or (low < pid <= high if low < high else not high < pid <= low)
            ]
        else:
            return []
        self._last = last
        self._seen = last_pid if last else b""
        if self._live:
            candidates = self._of_our_sessions(candidates, members)
        return self._find_related(candidates, members)

    def descendants_of(self, roots: Iterable[int], members: Container[int]) -> list[tuple[int, int]]:
        """(PID, parent's PID) of all descendants of newly attached processes, parents before children."""
        pids = set(roots)
        self._note_sessions(pids)
        return [pair for pair in self._find_related(self._pids(), pids) if pair[0] not in members]

    def parent_of(self, pid: int) -> int | None:
        """Return the parent's PID, or None if there is no such process."""
        # "pid (name) state ppid …": the name may contain spaces and parentheses, so search for the last ")".
        text = read_text(f"{self._proc}/{pid}/stat")
        if text is None:
            return None
        fields = text[text.rfind(")") + 1 :].split(None, 2)
        return int(fields[1]) if len(fields) > 1 else None

    def _find_related(self, candidates: Iterable[int], members: Container[int]) -> list[tuple[int, int]]:
        parents: dict[int, int] = {}
        for pid in candidates:
            if pid != self._excluded and pid not in members:
                parent = self.parent_of(pid)
                if parent is not None:
                    parents[pid] = parent
        parents_of_new: dict[int, int] = {}
        grown = True
        while grown:
            grown = False
            for pid, parent in parents.items():
                if (
                    pid not in parents_of_new
                    and (parent in members or parent in parents_of_new)
                    and self._is_process(pid)
                ):
                    parents_of_new[pid] = parent
                    grown = True
        self._note_sessions(parents_of_new)
        return list(parents_of_new.items())

    def _of_our_sessions(self, candidates: Iterable[int], members: Container[int]) -> list[int]:
        """Return the PIDs that are alive and in a session of the tree, or lead their own session.

        getsid() costs 0.5 µs, reading the parent 10 µs. On a busy host most new processes are not ours, or
        have already ended.
        """
        leaders: set[int] = set()
        ours = []
        for pid in candidates:
            try:
                session = os.getsid(pid)
            except ProcessLookupError:
                continue
            except PermissionError:  # hidden by a security module; the parent decides
                session = pid
            if session == pid:
                leaders.add(pid)
            if session in self._sessions or session in members or session in leaders:
                ours.append(pid)
        return ours

    def _note_sessions(self, pids: Iterable[int]) -> None:
        if not self._live:
            return
        for pid in pids:
            try:
                self._sessions.add(os.getsid(pid))
            except (ProcessLookupError, PermissionError):
                continue

    def _is_process(self, pid: int) -> bool:
        """/proc/N also exists for thread ids; only the file `status` distinguishes them."""
        text = read_text(f"{self._proc}/{pid}/status") or ""
        return f"\nTgid:\t{pid}\n" in text

    def _pids(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(self._proc) if name.isdigit())

    def _last_pid(self) -> int:
        return int(self._loadavg.read().rsplit(None, 1)[1])
