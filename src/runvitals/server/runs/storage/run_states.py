"""The states of runs, computed from the ends of their writers and from when the server last heard them.

The rule is `runvitals.model.state`. A writer is silent if the server has not heard from it for too long; the
times in its records do not matter. So a wrong clock does not make a run lost, a network outage makes it lost
only while it lasts, and a journal delivered a week later does not make a run crashed.

The state depends on the time of the query. So a run's row stores until when the run counts as running, and
its state after that. No update is needed at the moment a run becomes lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, select

from runvitals.model.ending import Ending
from runvitals.model.host import Host, hosts_of
from runvitals.model.state import LOST, RUNNING, deciding_writer, deciding_writers, silence_ms, worst
from runvitals.server.database.database import among, update_rows
from runvitals.server.database.tables.runs import run
from runvitals.server.database.tables.runs import writer as writer_table
from runvitals.server.events.automation_events import RunReached, raise_states
from runvitals.server.events.run_events import add_endings

_ENDING_COLUMNS = ("end_state", "exit_code", "signal", "out_of_memory")
_COLUMNS = [column for column in writer_table.c if column.name != "api_key_id"]


@dataclass(frozen=True, slots=True)
class StoredWriter:
    """A writer of a run: a monitor, a process that logs, or a client of the API.

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
        """Until when the run counts as running, ms UTC."""
        return self.heard_ms + silence_ms(self.interval_s)


def read_writers(connection: Connection, run_ids: Iterable[int]) -> dict[int, list[StoredWriter]]:
    """Return the writers of runs, in the order in which they started."""
    by_run: dict[int, list[StoredWriter]] = {run_id: [] for run_id in run_ids}
    statement = (
        select(*_COLUMNS)
        .where(among(connection, writer_table.c.run_id, by_run))
        .order_by(writer_table.c.started_ms, writer_table.c.name)
    )
    for row in connection.execute(statement):
        values = row._asdict()
        state, *details = (values.pop(name) for name in _ENDING_COLUMNS)
        by_run[row.run_id].append(StoredWriter(**values, ending=Ending(state, *details) if state else None))
    return by_run


def hosts(writers: Sequence[StoredWriter], now_ms: int) -> list[Host]:
    """Return the hosts of a run by its `read_writers`, in the order they joined, with states at `now_ms`."""
    return hosts_of(writers, lambda writer: now_ms <= writer.alive_until_ms)


def update_run_states(connection: Connection, run_ids: Iterable[int]) -> None:
    """Update the state columns of runs from their writers, and raise the events of those that ended.

    The runs must be locked (`lock_runs`).
    """
    rows: list[dict[str, Any]] = []
    ended: list[RunReached] = []
    endings: list[tuple[int, int, str, int]] = []
    for run_id, writers in read_writers(connection, run_ids).items():
        if not writers:
            continue
        by_host = deciding_writers(writers)
        deciding = [deciding_writer(same_host) for same_host in by_host.values()]
        settled = worst(writer.ending or Ending(LOST) for writer in deciding)
        if all(writer.ending is not None for writer in deciding):
            life = max(writer.id for same_host in by_host.values() for writer in same_host)
            last_ms = max(writer.last_ms for writer in writers)
            ended.append(RunReached(run_id, settled.state, f"{life}", last_ms))
            endings.append((run_id, life, settled.state, last_ms))
        rows.append(
            {
                "which": run_id,
                "started_ms": min(writer.started_ms for writer in writers),
                "last_ms": max(writer.last_ms for writer in writers),
                "alive_until_ms": max(
                    (writer.alive_until_ms for writer in deciding if writer.ending is None), default=None
                ),
                "settled_state": settled.state,
                "exit_code": settled.exit_code,
                "signal": settled.signal,
                "out_of_memory": settled.out_of_memory,
            }
        )
    update_rows(connection, run, rows)
    raise_states(connection, ended)
    add_endings(connection, endings)


def state_at(now_ms: int) -> ColumnElement[str]:
    """Return the state of a run at a time, as an SQL expression on its row."""
    return case((run.c.alive_until_ms >= now_ms, RUNNING), else_=run.c.settled_state)
