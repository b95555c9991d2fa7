"""A run as a table of runs shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, FromClause, Row, select

from runvitals.store.catalogue.database import among
from runvitals.store.catalogue.states import RUNNING, Ending
from runvitals.store.catalogue.tables import project, run, run_tag


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it stands at the moment it was asked about. Times are ms UTC.

    Args:
        id: its number, which is never given again.
        uid: its id as people know it.
        ended_ms: None while it is running.
        duration_ms: so far.
        deleted_ms: when it was thrown away; None: it was not.
        stop_requested_ms: when a person asked for its end; None: nobody did.
    """

    id: int
    uid: str
    project_id: int
    project: str
    name: str
    group: str | None
    job_type: str | None
    tags: tuple[str, ...]
    ending: Ending
    started_ms: int
    last_ms: int
    ended_ms: int | None
    duration_ms: int
    created_ms: int
    deleted_ms: int | None
    stop_requested_ms: int | None

    @property
    def state(self) -> str:
        return self.ending.state


SHOWN = (*run.c, project.c.name.label("project"))
"""What `run_rows` wants of a statement."""


def with_project() -> FromClause:
    """Runs, each with its project."""
    return run.join(project, project.c.id == run.c.project_id)


def run_rows(connection: Connection, found: Sequence[Row[Any]], now_ms: int) -> list[RunRow]:
    """Rows of `SHOWN` as what they mean, in the same order."""
    tags: dict[int, list[str]] = defaultdict(list)
    of_runs = among(connection, run_tag.c.run_id, [row.id for row in found])
    for run_id, tag in connection.execute(select(run_tag).where(of_runs).order_by(run_tag.c.tag)):
        tags[run_id].append(tag)
    return [_run_row(row, tuple(tags[row.id]), now_ms) for row in found]


def _run_row(row: Row[Any], tags: tuple[str, ...], now_ms: int) -> RunRow:
    running = row.alive_until_ms is not None and row.alive_until_ms >= now_ms
    settled = Ending(row.settled_state, row.exit_code, row.signal, row.out_of_memory)
    return RunRow(
        id=row.id,
        uid=row.uid,
        project_id=row.project_id,
        project=row.project,
        name=row.name,
        group=row.group_name or None,
        job_type=row.job_type or None,
        tags=tags,
        ending=Ending(RUNNING) if running else settled,
        started_ms=row.started_ms,
        last_ms=row.last_ms,
        ended_ms=None if running else row.last_ms,
        duration_ms=max(0, (now_ms if running else row.last_ms) - row.started_ms),
        created_ms=row.created_ms,
        deleted_ms=row.deleted_ms,
        stop_requested_ms=row.stop_requested_ms,
    )
