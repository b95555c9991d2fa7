"""Finds restarts in event files: what a training logged after its last checkpoint, and logged again later.

A session replaces what sessions that had ended before it began wrote from its first step on. Those that
overlap in time are of several writers, of which none replaces another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from runvitals.readers.importers.tensorboard.event_file import EventFile, EventValue, LoggedEvent


@dataclass(slots=True)
class Session:
    """A session: what one process wrote from its start to its end, or until it was restarted.

    Args:
        path, number: its file, and its place among the sessions of that file.
        start_step: the first step, as the process announced it; None: it announced none.
        first_steps: the step of the first value of each tag.
    """

    path: str
    number: int
    began_ms: int
    ended_ms: int
    start_step: int | None = None
    first_steps: dict[str, int] = field(default_factory=dict)

    def replaces_from(self, tag: str, earlier: Session) -> int | None:
        """Return the step from which this session replaces the values that an earlier one has under a tag.

        An announced step counts for all tags of an earlier session of the same program, which has a tag in
        common; otherwise each tag counts from its own first step.
        """
        if self.start_step is not None and not earlier.first_steps.keys().isdisjoint(self.first_steps):
            return self.start_step
        return self.first_steps.get(tag)


@dataclass(slots=True)
class Restart:
    """The rows that a session replaced.

    Args:
        rows: rows of earlier sessions.
        step: the lowest step from which it replaced some.
    """

    rows: int
    step: int
    began_ms: int

    def __str__(self) -> str:
        return f"{self.rows} rows replaced after a restart at step {self.step}"


class Sessions:
    """The sessions of a run, and which values of each were replaced.

    Attributes:
        paths: the files in the order of their first values; those without values come last.
        restarts: what was replaced among the values that `current` was asked about.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        sessions = {path: read_sessions(path) for path in paths}
        self._sessions = sorted(chain.from_iterable(sessions.values()), key=lambda session: session.began_ms)
        self._began_ms = [session.began_ms for session in self._sessions]
        self._order = {(session.path, session.number): at for at, session in enumerate(self._sessions)}
        self.paths = list(dict.fromkeys([session.path for session in self._sessions] + list(sessions)))
        self.restarts: dict[int, Restart] = {}
        self._replacing: dict[tuple[int, str], list[tuple[int, int]]] = {}
        self._replaced: tuple[int, int, int] | None = None

    def current(self, path: str, number: int, event: LoggedEvent) -> list[EventValue]:
        """Return the values of an event that no later session replaced."""
        return [value for value in event.values if not self._is_replaced(path, number, value, event.step)]

    def _is_replaced(self, path: str, number: int, value: EventValue, step: int) -> bool:
        at = self._order[path, number]
        for later, first_step in self._replacing_of(at, value.tag):
            if step >= first_step:
                if value.kind == "number":
                    self._count((at, later, step), first_step)
                return True
        return False

    def _replacing_of(self, at: int, tag: str) -> list[tuple[int, int]]:
        """Return the sessions that replace values of a tag, and from which step; each from a lower one."""
        replacing = self._replacing.get((at, tag))
        if replacing is None:
            replacing = self._replacing[at, tag] = []
            earlier = self._sessions[at]
            for later in range(
                max(at + 1, bisect_left(self._began_ms, earlier.ended_ms)), len(self._sessions)
            ):
                step = self._sessions[later].replaces_from(tag, earlier)
                if step is not None and (not replacing or step < replacing[-1][1]):
                    replacing.append((later, step))
        return replacing

    def _count(self, row: tuple[int, int, int], first_step: int) -> None:
        _, later, _ = row
        restart = self.restarts.setdefault(later, Restart(0, first_step, self._began_ms[later]))
        restart.step = min(restart.step, first_step)
        if row != self._replaced:
            restart.rows += 1
            self._replaced = row


def read_sessions(path: str) -> list[Session]:
    """Return the sessions in a file that have values."""
    sessions: dict[int, Session] = {}
    start_step = None
    for number, event in number_sessions(EventFile(path).events()):
        if event.start_step is not None:
            start_step = event.start_step
        if not event.values:
            continue
        session = sessions.get(number)
        if session is None:
            session = sessions[number] = Session(path, number, event.time_ms, event.time_ms, start_step)
            start_step = None
        session.began_ms = min(session.began_ms, event.time_ms)
        session.ended_ms = max(session.ended_ms, event.time_ms)
        for value in event.values:
            session.first_steps[value.tag] = min(session.first_steps.get(value.tag, event.step), event.step)
    return list(sessions.values())


def number_sessions(events: Iterable[LoggedEvent]) -> Iterator[tuple[int, LoggedEvent]]:
    """Events with the number of their session: one begins where a writer says so after values."""
    number, has_values = 0, False
    for event in events:
        if event.begins and has_values:
            number, has_values = number + 1, False
        has_values = has_values or bool(event.values)
        yield number, event
