"""The states of runs, computed from the last signs of life and the end records of their writers.

The rule is the journal's (`runvitals.model.state`), with one difference: whether a writer is silent is
measured by when the server last heard from it, not by the times in its records. So a wrong clock does not
make a run lost, a network outage makes it lost only while it lasts, and a journal delivered a week later does
not make a run crashed.

The state depends on the time of the query, so a run's row stores until when the run counts as running, and
its state after that. No update is needed at the moment a run becomes lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, select

from runvitals.model.state import LOST, MONITOR, RUNNING, TRAIN, WORST_FIRST, silence_ms
from runvitals.store.metadata.database import among, update_rows
from runvitals.store.metadata.tables import run, writer


@dataclass(frozen=True, slots=True)
class Ending:
    """How a host's part of a run ended, or a whole run stands; None where it is not known."""

    state: str
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool | None = None


@dataclass(frozen=True, slots=True)
class StoredWriter:
    """One journal of a run: a life of a monitor, a process that logs, or a client of the API.

    Args:
        lane_id: the id under which the sample store keeps its samples (see `writer_registration`).
        interval_s: the longest normal time between two heartbeats; None: a second.
        last_ms: time of its newest record, by its own clock.
        heard_ms: when the server last heard from it, by the server's clock.
        ending: from its `end` record; None until there is one.
    """

    id: int
    run_id: int
    name: str
    lane_id: int
    role: str
    host: str
    pid: int | None
    rank: int | None
    interval_s: float | None
    started_ms: int
    last_ms: int
    heard_ms: int
    ending: Ending | None

    @property
    def alive_until_ms(self) -> int:
        return self.heard_ms + silence_ms(self.interval_s)


@dataclass(frozen=True, slots=True)
class HostState:
    """One host of a run, according to its newest monitor. `monitors`: how many monitors ran on it."""

    name: str
    ending: Ending
    started_ms: int
    last_ms: int
    interval_s: float | None
    monitors: int


def read_writers(connection: Connection, run_ids: Iterable[int]) -> dict[int, list[StoredWriter]]:
    """The writers of runs, in the order in which they started."""
    found: dict[int, list[StoredWriter]] = {run_id: [] for run_id in run_ids}
    statement = (
        select(writer)
        .where(among(connection, writer.c.run_id, found))
        .order_by(writer.c.started_ms, writer.c.name)
    )
    for row in connection.execute(statement):
        values = row._asdict()
        state, *how = (values.pop(name) for name in ("end_state", "exit_code", "signal", "out_of_memory"))
        found[row.run_id].append(StoredWriter(**values, ending=Ending(state, *how) if state else None))
    return found


def hosts(writers: Sequence[StoredWriter], now_ms: int) -> list[HostState]:
    """Every host of a run, in the order in which they joined, with their states at `now_ms`."""
    role = _telling_role(writers)
    return [
        HostState(
            name=name,
            ending=_telling(lives).ending or Ending(RUNNING if now_ms <= lives[-1].alive_until_ms else LOST),
            started_ms=lives[0].started_ms,
            last_ms=max(life.last_ms for life in lives),
            interval_s=lives[-1].interval_s,
            monitors=len(lives) if role == MONITOR else 0,
        )
        for name, lives in _lives(writers, role).items()
    ]


def _telling(lives: Sequence[StoredWriter]) -> StoredWriter:
    """The writer that tells how its host stands: the newest. Of training processes, where no monitor could be
    started, the newest that told of its end: forked ones, which write too, tell of none.
    """
    ended = [life for life in lives if life.role == TRAIN and life.ending is not None]
    return (ended or lives)[-1]


def _telling_role(writers: Sequence[StoredWriter]) -> str | None:
    """The role whose writers determine a run's state; None: all, if only clients of the API write."""
    roles = {writer.role for writer in writers}
    return next((role for role in (MONITOR, TRAIN) if role in roles), None)


def _lives(writers: Sequence[StoredWriter], role: str | None) -> dict[str, list[StoredWriter]]:
    by_host: dict[str, list[StoredWriter]] = {}
    for one in writers:
        if role in (None, one.role):
            by_host.setdefault(one.host, []).append(one)
    return by_host


def restate(connection: Connection, run_ids: Iterable[int]) -> None:
    """Update the state columns of runs from their writers. The runs must be locked (`lock_runs`)."""
    rows: list[dict[str, Any]] = []
    for run_id, writers in read_writers(connection, run_ids).items():
        if not writers:
            continue
        newest = [_telling(lives) for lives in _lives(writers, _telling_role(writers)).values()]
        settled = _gravest([one.ending or Ending(LOST) for one in newest])
        rows.append(
            {
                "which": run_id,
                "started_ms": min(one.started_ms for one in writers),
                "last_ms": max(one.last_ms for one in writers),
                "alive_until_ms": max(
                    (one.alive_until_ms for one in newest if one.ending is None), default=None
                ),
                "settled_state": settled.state,
                "exit_code": settled.exit_code,
                "signal": settled.signal,
                "out_of_memory": settled.out_of_memory,
            }
        )
    update_rows(connection, run, rows)


def _gravest(endings: Sequence[Ending]) -> Ending:
    return min(endings, key=lambda ending: WORST_FIRST.index(ending.state))


def state_at(now_ms: int) -> ColumnElement[str]:
    """The state of a run at a time, as an SQL expression on its row."""
    return case((run.c.alive_until_ms >= now_ms, RUNNING), else_=run.c.settled_state)
