"""A run as shown in a table of runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from runvitals.model.ending import Ending
from runvitals.model.run import RunAuthor, RunServiceAccount
from runvitals.model.run_state import State
from runvitals.model.state import RUNNING
from runvitals.server.database.database import among
from runvitals.server.database.tables.accounts import entity, service_account, user_account
from runvitals.server.database.tables.content import entity_picture, picture
from runvitals.server.database.tables.runs import project, run, run_tag

_NEAR_MS = 600_000
"""If the newest record of a live writer is further off than this, the writer's clock is wrong."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """The state of a run at the time of the query. Times are ms UTC.

    Args:
        id: its integer id, never reused.
        uid: the run id users see.
        ended_ms: None while it is running.
        duration_ms: so far.
        deleted_ms: when it was moved to the trash; None: it is not there.
        stop_requested_ms: when a user requested a stop; None if none did.
        entity: name of the team or user that has the project; None in a store without accounts.
        author: the user whose run it is; None if there is none.
        service_account: the one that sent it; None if there is none.
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
    entity: str | None
    author: RunAuthor | None
    service_account: RunServiceAccount | None

    @property
    def state(self) -> State:
        """The state at the time of the query."""
        return self.ending.state


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of a list. `next`: the cursor of the next page; None on the last page."""

    runs: list[RunRow]
    next: str | None


_author_entity = entity.alias("author_entity")

# In the order in which `_run_row` reads them: access by name costs 15 µs per row in SQLAlchemy.
_COLUMNS = (
    run.c.id,
    run.c.uid,
    run.c.project_id,
    project.c.name,
    run.c.name,
    run.c.group_name,
    run.c.job_type,
    run.c.started_ms,
    run.c.last_ms,
    run.c.alive_until_ms,
    run.c.settled_state,
    run.c.exit_code,
    run.c.signal,
    run.c.out_of_memory,
    run.c.created_ms,
    run.c.deleted_ms,
    run.c.stop_requested_ms,
    entity.c.name,
    user_account.c.id,
    _author_entity.c.name,
    user_account.c.display_name,
    user_account.c.deleted_ms,
    picture.c.digest,
    service_account.c.id,
    service_account.c.name,
    service_account.c.deleted_ms,
)


def read_rows(connection: Connection, run_ids: Sequence[int], now_ms: int) -> list[RunRow]:
    """Return runs in the requested order; unknown ids are left out."""
    statement = (
        select(*_COLUMNS)
        .join(project, project.c.id == run.c.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .outerjoin(user_account, user_account.c.id == run.c.author_id)
        .outerjoin(_author_entity, _author_entity.c.id == user_account.c.entity_id)
        .outerjoin(entity_picture, entity_picture.c.entity_id == user_account.c.entity_id)
        .outerjoin(picture, picture.c.id == entity_picture.c.picture_id)
        .outerjoin(service_account, service_account.c.id == run.c.service_account_id)
        .where(among(connection, run.c.id, run_ids))
    )
    rows = {row[0]: row for row in connection.execute(statement)}
    tags: dict[int, list[str]] = defaultdict(list)
    of_runs = among(connection, run_tag.c.run_id, run_ids)
    for run_id, tag in connection.execute(select(run_tag).where(of_runs).order_by(run_tag.c.tag)):
        tags[run_id].append(tag)
    return [_run_row(rows[run_id], tuple(tags[run_id]), now_ms) for run_id in run_ids if run_id in rows]


def _run_row(row: Sequence[Any], tags: tuple[str, ...], now_ms: int) -> RunRow:
    (
        run_id,
        uid,
        project_id,
        project_name,
        name,
        group,
        job_type,
        started_ms,
        last_ms,
        until_ms,
        *later_columns,
    ) = row
    state, exit_code, signal, out_of_memory, created_ms, deleted_ms, stop_requested_ms, *owners = (
        later_columns
    )
    entity_name, *author = owners[:6]
    running = until_ms is not None and until_ms >= now_ms
    end_ms = now_ms if running and abs(now_ms - last_ms) <= _NEAR_MS else last_ms
    return RunRow(
        id=run_id,
        uid=uid,
        project_id=project_id,
        project=project_name,
        name=name,
        group=group or None,
        job_type=job_type or None,
        tags=tags,
        ending=Ending(RUNNING) if running else Ending(state, exit_code, signal, out_of_memory),
        started_ms=started_ms,
        last_ms=last_ms,
        ended_ms=None if running else last_ms,
        duration_ms=max(0, end_ms - started_ms),
        created_ms=created_ms,
        deleted_ms=deleted_ms,
        stop_requested_ms=stop_requested_ms,
        entity=entity_name,
        author=_author(*author),
        service_account=_service_account(*owners[6:]),
    )


def _author(
    user_id: int | None,
    name: str | None,
    display_name: str | None,
    deleted_ms: int | None,
    digest: str | None,
) -> RunAuthor | None:
    if user_id is None:
        return None
    return RunAuthor(user_id, name if deleted_ms is None else None, display_name or "", digest)


def _service_account(
    account_id: int | None, name: str | None, deleted_ms: int | None
) -> RunServiceAccount | None:
    if account_id is None:
        return None
    return RunServiceAccount(account_id, name or "", deleted_ms is not None)
