"""Registers writers: assigns ids to a writer, its run and its project.

A **lane** is the id under which the sample store keeps series, as its `run`. All monitors of a host share one
lane, so that a series continues when the monitor is restarted; each other writer has its own, so that the
ranks of a host do not overwrite each other. A lane's id is the id of its first writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select, update

from runvitals.journal.paths import check_run_id, check_writer, role_and_host
from runvitals.model.search_text import search_text
from runvitals.model.state import LOST, MONITOR
from runvitals.store.metadata.database import add_rows, among, ensure_ids, ids_of
from runvitals.store.metadata.projects import DEFAULT_PROJECT, project_name
from runvitals.store.metadata.run_locks import lock_known_runs
from runvitals.store.metadata.run_states import update_run_states
from runvitals.store.metadata.section_documents import SectionKey, read_documents
from runvitals.store.metadata.tables import project, run, run_text, writer
from runvitals.store.metadata.text import check_integers, checked_name

_NO_LANE = 0


@dataclass(frozen=True, slots=True)
class WriterRegistration:
    """A writer to be registered.

    Args:
        run: the run id that users see. The run is created if it does not exist.
        writer: its name within the run.
        project: None if the writer does not name one.
        role, host: default: taken from the writer's name.
        started_ms: when the writer started, by its own clock; default: now.
        interval_s: the longest normal time between two heartbeats: 10 for a client that samples every second
            and sends every 10 s.
    """

    run: str
    writer: str
    project: str | None = None
    role: str | None = None
    host: str | None = None
    pid: int | None = None
    rank: int | None = None
    interval_s: float | None = None
    started_ms: int | None = None

    def check(self) -> None:
        """
        Raises:
            ValueError: a name or number that cannot be stored; the text says what is allowed.
        """
        check_run_id(self.run)
        check_writer(self.writer)
        for what in ("role", "host"):
            if getattr(self, what) is not None:
                checked_name(what, getattr(self, what))
        if self.interval_s is not None and not 0 < self.interval_s <= 86400:
            raise ValueError(
                f"invalid interval_s {self.interval_s!r} of {self.writer}; expected over 0 to 86400"
            )
        check_integers(f"writer {self.writer}", pid=self.pid, rank=self.rank, started_ms=self.started_ms)


@dataclass(frozen=True, slots=True)
class RegisteredWriter:
    """The ids of a writer, and its host.

    `deleted`: the run is in the trash and accepts no more samples.
    """

    run_id: int
    writer_id: int
    lane_id: int
    deleted: bool
    host: str


def joined(connection: Connection, joining: Sequence[WriterRegistration]) -> list[RegisteredWriter | None]:
    """The ids of writers that are registered, None for the others, in the order of the arguments."""
    runs = ids_of(connection, run.c.uid, (one.run for one in joining))
    statement = (
        select(
            run.c.uid,
            writer.c.name,
            writer.c.run_id,
            writer.c.id,
            writer.c.lane_id,
            run.c.deleted_ms,
            writer.c.host,
        )
        .join(run, run.c.id == writer.c.run_id)
        .where(among(connection, writer.c.run_id, runs.values()))
        .where(writer.c.name.in_({one.writer for one in joining}))
    )
    found = {
        (row.uid, row.name): RegisteredWriter(
            row.run_id, row.id, row.lane_id, row.deleted_ms is not None, row.host
        )
        for row in connection.execute(statement)
    }
    return [found.get((one.run, one.writer)) for one in joining]


def join(
    connection: Connection, joining: Sequence[WriterRegistration], now_ms: int
) -> list[RegisteredWriter]:
    """The ids of writers; those that are missing are registered."""
    names = {project_name(one.project) for one in joining}
    projects = ensure_ids(connection, project.c.name, names | {DEFAULT_PROJECT}, created_ms=now_ms)
    runs = _ensure_runs(connection, joining, projects, now_ms)
    lock_known_runs(connection, runs.values())
    known = joined(connection, joining)
    new = {(one.run, one.writer): one for one, before in zip(joining, known, strict=True) if before is None}
    if new:
        add_rows(connection, writer, [_row(runs[one.run], one, now_ms) for one in new.values()])
        affected = {runs[one.run] for one in new.values()}
        _assign_lanes(connection, affected)
        _leave_default_project(connection, new.values(), runs, projects)
        update_run_states(connection, affected)
    return [one for one in joined(connection, joining) if one]


def _ensure_runs(
    connection: Connection, joining: Sequence[WriterRegistration], projects: dict[str, int], now_ms: int
) -> dict[str, int]:
    """The ids of the runs by run id; missing runs are created."""
    named: dict[str, str] = {}
    for one in joining:
        if one.project or one.run not in named:
            named[one.run] = project_name(one.project)
    found = ids_of(connection, run.c.uid, named)
    missing = sorted(named.keys() - found.keys())
    if missing:
        new = {
            "group_name": "",
            "job_type": "",
            "created_ms": now_ms,
            "started_ms": now_ms,
            "last_ms": now_ms,
            "settled_state": LOST,
        }
        rows = [{"uid": uid, "name": uid, "project_id": projects[named[uid]], **new} for uid in missing]
        add_rows(connection, run, rows)
        found.update(ids_of(connection, run.c.uid, missing))
        texts = [{"run_id": found[uid], "text": search_text(uid, {}, {})} for uid in missing]
        add_rows(connection, run_text, texts)
    return found


def _row(run_id: int, one: WriterRegistration, now_ms: int) -> dict[str, object]:
    role, host = role_and_host(one.writer)
    started_ms = now_ms if one.started_ms is None else one.started_ms
    return {
        "run_id": run_id,
        "name": one.writer,
        "lane_id": _NO_LANE,
        "role": checked_name("role", one.role or role),
        "host": checked_name("host", one.host or host),
        "pid": one.pid,
        "rank": one.rank,
        "interval_s": one.interval_s,
        "started_ms": started_ms,
        "last_ms": started_ms,
        "heard_ms": now_ms,
    }


def _assign_lanes(connection: Connection, run_ids: Iterable[int]) -> None:
    same = writer.alias()
    first = (
        select(func.min(same.c.id))
        .where(same.c.run_id == writer.c.run_id, same.c.host == writer.c.host, same.c.role == MONITOR)
        .scalar_subquery()
    )
    connection.execute(
        update(writer)
        .where(among(connection, writer.c.run_id, run_ids), writer.c.lane_id == _NO_LANE)
        .values(lane_id=case((writer.c.role == MONITOR, first), else_=writer.c.id))
    )


def _leave_default_project(
    connection: Connection, new: Iterable[WriterRegistration], runs: dict[str, int], projects: dict[str, int]
) -> None:
    """Move a run whose first writers named no project to the project that a later writer names.

    Runs whose project was set explicitly, in their `run` section, are not moved.
    """
    named = {runs[one.run]: projects[project_name(one.project)] for one in new if one.project}
    statement = select(run.c.id).where(
        among(connection, run.c.id, named), run.c.project_id == projects[DEFAULT_PROJECT]
    )
    unnamed = [
        run_id
        for run_id in connection.execute(statement).scalars()
        if named[run_id] != projects[DEFAULT_PROJECT]
    ]
    documents = read_documents(connection, unnamed, ["run"])
    for run_id in unnamed:
        about = documents.get(SectionKey(run_id, "run", ""))
        if about is None or not about.values.get("project"):
            connection.execute(update(run).where(run.c.id == run_id).values(project_id=named[run_id]))
