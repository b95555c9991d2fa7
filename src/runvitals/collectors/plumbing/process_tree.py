"""Which processes belong to a run: the attached ones and all their descendants.

Scanning /proc for parents costs 1 ms per hundred processes of the host. It is not done: the kernel hands out
process ids in turn and names the last one in /proc/loadavg (1 µs). Unchanged, nothing was started and the
tree has no new member; a little higher, only the ids between can be new ones. Once found, a member stays one,
even when its parent ends and init adopts it.
"""

from __future__ import annotations

import os

from runvitals.collectors.base import Every, PseudoFile, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

# So many new ids are looked at one by one, 3 µs each; more are looked for in a listing of /proc, at most
# every 5 s.
FEW = 256
LISTING_EVERY_S = 5.0


class Tree:
    """Finds a run's processes; whether they still live is for the reader of their files to notice.

    Args:
        proc: where procfs lies.
        excluded: a process that never counts, nor what it starts (the monitor itself).

    Example:
        >>> tree = Tree("/proc", excluded=os.getpid())
        >>> tree.descendants_of({1234}, {})        # all there are now
        [(1240, 1234)]
        >>> tree.newcomers({1234, 1240}, mono_s)   # those since the last look
        []
    """

    def __init__(self, proc: str, excluded: int) -> None:
        self._proc = proc
        self._live = proc == "/proc"  # its ids are those of our own system calls
        self._sessions: set[int] = set()
        self._excluded = excluded
        self._loadavg = PseudoFile(proc + "/loadavg")
        self._listing = Every(LISTING_EVERY_S)
        self._last = self._last_pid()
        self._seen = b""  # the last id as the file has it, once everything up to it has been looked at

    def newcomers(self, members: Container[int], mono_s: float) -> list[tuple[int, int]]:
        """(pid, parent's pid) of every process that joined since the last call, parents before children."""
        text = os.pread(self._loadavg.fd, 64, 0)
        seen = text[text.rfind(b" ") :]
        if seen == self._seen:
            return []
        last = int(seen)
        if 0 <= last - self._last <= FEW and last != 0:
            candidates: Iterable[int] = range(self._last + 1, last + 1)
        elif self._listing.due(mono_s):
            # Ids wrapped around (they start low again), or very many are new. Where a sandbox names no last
            # id (0), all are looked at.
            low, high = self._last, last
            candidates = [
                pid
                for pid in self._pids()
                if high == 0 or (low < pid <= high if low < high else not high < pid <= low)
            ]
        else:
            return []
        self._last = last
        self._seen = seen if last else b""
        if self._live:
            candidates = self._of_our_sessions(candidates, members)
        return self._related(candidates, members)

    def descendants_of(self, roots: Iterable[int], members: Container[int]) -> list[tuple[int, int]]:
        """(pid, parent's pid) of all processes below some that have just been attached, parents before
        children.
        """
        known = set(roots)
        self._note_sessions(known)
        return [pair for pair in self._related(self._pids(), known) if pair[0] not in members]

    def parent_of(self, pid: int) -> int | None:
        """The parent's pid, or None where there is no such process."""
        # "pid (name) state ppid …": the name may hold spaces and brackets, so the last ")" ends it.
        text = read_text(f"{self._proc}/{pid}/stat")
        if text is None:
            return None
        fields = text[text.rfind(")") + 1 :].split(None, 2)
        return int(fields[1]) if len(fields) > 1 else None

    def _related(self, candidates: Iterable[int], members: Container[int]) -> list[tuple[int, int]]:
        parents: dict[int, int] = {}
        for pid in candidates:
            if pid != self._excluded and pid not in members:
                parent = self.parent_of(pid)
                if parent is not None:
                    parents[pid] = parent
        found: dict[int, int] = {}
        grown = True
        while grown:
            grown = False
            for pid, parent in parents.items():
                if pid not in found and (parent in members or parent in found) and self._is_process(pid):
                    found[pid] = parent
                    grown = True
        self._note_sessions(found)
        return list(found.items())

    def _of_our_sessions(self, candidates: Iterable[int], members: Container[int]) -> list[int]:
        """Those that are alive and in a session of the tree, or lead one of their own.

        Asking for a session costs 0.5 µs, asking for the parent 10 µs; on a busy host most new processes are
        somebody else's, or over already.
        """
        leaders: set[int] = set()
        ours = []
        for pid in candidates:
            try:
                session = os.getsid(pid)
            except ProcessLookupError:
                continue
            except PermissionError:  # a security module hides it; its parent will tell
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
        """/proc/N opens for the id of any thread, too; only its status tells them apart."""
        text = read_text(f"{self._proc}/{pid}/status") or ""
        return f"\nTgid:\t{pid}\n" in text

    def _pids(self) -> list[int]:
        return sorted(int(name) for name in os.listdir(self._proc) if name.isdigit())

    def _last_pid(self) -> int:
        return int(self._loadavg.read().rsplit(None, 1)[1])
