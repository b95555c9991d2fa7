"""Registers writers: assigns ids to a writer, its run and its project.

A **lane** is the id under which the sample store keeps series, as its `run`. All monitors of a host share one
lane, so that a series continues when the monitor is restarted; each other writer has its own, so that the
ranks of a host do not overwrite each other. A lane's id is the id of its first writer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select, update

from runvitals.journal.paths import check_run_id, check_writer, role_and_host
from runvitals.model.names import DEFAULT_PROJECT, project_name
from runvitals.model.search_text import search_text
from runvitals.model.state import LOST, MONITOR, RUNNING
from runvitals.server.database.database import add_rows, among, rows_named
from runvitals.server.database.section_documents import SectionKey, read_documents
from runvitals.server.database.tables.runs import project, run, run_text, writer
from runvitals.server.database.text import check_integers, checked_name
from runvitals.server.events.automation_events import RunReached, raise_states
from runvitals.server.projects.storage.projects import (
    ProjectKey,
    ProjectOwner,
    ensure_projects,
    find_projects,
)
from runvitals.server.runs.storage.run_locks import lock_known_runs
from runvitals.server.runs.storage.run_states import update_run_states
from runvitals.server.runs.storage.run_tombstones import find_purged

_NO_LANE = 0
MAX_INTERVAL_S = 86_400


@dataclass(frozen=True, slots=True)
class Sender:
    """Who registers a writer, in a store with accounts.

    Args:
        entity_id: the team or user in which the run is, or is created.
        author_id, service_account_id: whose a new run is.
        api_key_id: the key that was used.
    """

    entity_id: int | None = None
    author_id: int | None = None
    service_account_id: int | None = None
    api_key_id: int | None = None


UNKNOWN_SENDER = Sender()
"""The sender in a store without accounts."""
RunKey = tuple[int | None, str]
"""The entity of a run, and its run id."""
_PURGED = 0
"""The run, writer and lane of a run that was deleted for good."""


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
        sender: who registers it.
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
    sender: Sender = UNKNOWN_SENDER

    @property
    def run_key(self) -> RunKey:
        """Entity and run id of the writer's run."""
        return self.sender.entity_id, self.run

    def check(self) -> None:
        """Check that names and numbers can be stored.

        Raises:
            ValueError: one cannot; the text says what is allowed.
        """
        check_run_id(self.run)
        check_writer(self.writer)
        for field_name in ("role", "host"):
            if getattr(self, field_name) is not None:
                checked_name(field_name, getattr(self, field_name))
        if self.interval_s is not None and not 0 < self.interval_s <= MAX_INTERVAL_S:
            expected = f"expected over 0 to {MAX_INTERVAL_S}"
            raise ValueError(f"invalid interval_s {self.interval_s!r} of {self.writer}; {expected}")
        check_integers(f"writer {self.writer}", pid=self.pid, rank=self.rank, started_ms=self.started_ms)


@dataclass(frozen=True, slots=True)
class RegisteredWriter:
    """The ids of a writer, and its host.

    Args:
        deleted: the run is in the trash, or was deleted for good, and accepts no more samples.
        project_id: the project of the run.
        author_id, service_account_id: whose the run is.
    """

    run_id: int
    writer_id: int
    lane_id: int
    deleted: bool
    host: str
    project_id: int = 0
    author_id: int | None = None
    service_account_id: int | None = None

    @property
    def purged(self) -> bool:
        """Whether the run was deleted for good; then there are no ids."""
        return self.run_id == _PURGED


def find_registered(
    connection: Connection, joining: Sequence[WriterRegistration]
) -> list[RegisteredWriter | None]:
    """Return the ids of writers that are registered, None for the others, in the order of the arguments."""
    runs = _find_runs(connection, {entry.run_key for entry in joining})
    statement = (
        select(
            writer.c.run_id,
            writer.c.name,
            writer.c.id,
            writer.c.lane_id,
            run.c.deleted_ms,
            writer.c.host,
            run.c.project_id,
            run.c.author_id,
            run.c.service_account_id,
        )
        .join(run, run.c.id == writer.c.run_id)
        .where(among(connection, writer.c.run_id, runs.values()))
        .where(writer.c.name.in_({entry.writer for entry in joining}))
    )
    writers = {
        (row.run_id, row.name): RegisteredWriter(
            row.run_id,
            row.id,
            row.lane_id,
            row.deleted_ms is not None,
            row.host,
            row.project_id,
            row.author_id,
            row.service_account_id,
        )
        for row in connection.execute(statement)
    }
    return [writers.get((runs.get(entry.run_key, _PURGED), entry.writer)) for entry in joining]


def join(
    connection: Connection, joining: Sequence[WriterRegistration], now_ms: int
) -> list[RegisteredWriter]:
    """Return the ids of writers; those that are missing are registered."""
    purged = find_purged(connection, {entry.run_key for entry in joining})
    _join(connection, [entry for entry in joining if entry.run_key not in purged], now_ms)
    return [
        registered or RegisteredWriter(_PURGED, _PURGED, _PURGED, True, "")
        for registered in find_registered(connection, joining)
    ]


def _join(connection: Connection, joining: Sequence[WriterRegistration], now_ms: int) -> None:
    projects = ensure_projects(
        connection,
        [
            (
                project_name(entry.project),
                ProjectOwner(entry.sender.entity_id, entry.sender.author_id),
            )
            for entry in _without_project(connection, joining)
        ],
        now_ms,
    )
    runs = _ensure_runs(connection, joining, projects, now_ms)
    lock_known_runs(connection, runs.values())
    writers = find_registered(connection, joining)
    new = {
        (entry.run_key, entry.writer): entry
        for entry, before in zip(joining, writers, strict=True)
        if before is None
    }
    if new:
        add_rows(
            connection,
            writer,
            [_row(runs[entry.run_key], entry, now_ms) for entry in new.values()],
        )
        affected = {runs[entry.run_key] for entry in new.values()}
        _assign_lanes(connection, affected)
        _leave_default_project(connection, new.values(), runs, projects)
        started = _not_running(connection, affected)
        update_run_states(connection, affected)
        raise_states(
            connection, [RunReached(run_id, RUNNING, f"{now_ms}", now_ms) for run_id in sorted(started)]
        )


def _not_running(connection: Connection, run_ids: Iterable[int]) -> set[int]:
    """Return those of some runs that are new, or have ended."""
    statement = select(run.c.id).where(among(connection, run.c.id, run_ids), run.c.alive_until_ms.is_(None))
    return set(connection.execute(statement).scalars())


def _without_project(
    connection: Connection, joining: Sequence[WriterRegistration]
) -> list[WriterRegistration]:
    """Return those whose run is new, or is still in the default project."""
    runs = _find_runs(connection, {entry.run_key for entry in joining})
    statement = (
        select(run.c.id)
        .join(project, project.c.id == run.c.project_id)
        .where(among(connection, run.c.id, runs.values()), project.c.name == DEFAULT_PROJECT)
    )
    in_default = set(connection.execute(statement).scalars())
    return [entry for entry in joining if entry.run_key not in runs or runs[entry.run_key] in in_default]


def _find_runs(connection: Connection, keys: Collection[RunKey]) -> dict[RunKey, int]:
    rows = rows_named(connection, run.c.uid, (uid for _, uid in keys), run.c.entity_id)
    numbers = {(entity_id, uid): number for uid, entity_id, number in rows}
    return {key: numbers[key] for key in keys if key in numbers}


def _ensure_runs(
    connection: Connection,
    joining: Sequence[WriterRegistration],
    projects: dict[ProjectKey, int],
    now_ms: int,
) -> dict[RunKey, int]:
    """Return the ids of the runs by entity and run id; missing runs are created."""
    first: dict[RunKey, WriterRegistration] = {}
    for entry in joining:
        if entry.project or entry.run_key not in first:
            first[entry.run_key] = entry
    numbers = _find_runs(connection, first)
    missing = sorted(first.keys() - numbers.keys(), key=lambda key: (key[0] or 0, key[1]))
    if missing:
        new = {
            "group_name": "",
            "job_type": "",
            "created_ms": now_ms,
            "started_ms": now_ms,
            "last_ms": now_ms,
            "settled_state": LOST,
        }
        rows = [
            {
                "uid": uid,
                "name": uid,
                "entity_id": entity_id,
                "project_id": projects[entity_id, project_name(first[entity_id, uid].project)],
                "author_id": first[entity_id, uid].sender.author_id,
                "service_account_id": first[entity_id, uid].sender.service_account_id,
                **new,
            }
            for entity_id, uid in missing
        ]
        add_rows(connection, run, rows)
        numbers.update(_find_runs(connection, missing))
        texts = [{"run_id": numbers[key], "text": search_text(key[1], {}, {})} for key in missing]
        add_rows(connection, run_text, texts)
    return numbers


def _row(run_id: int, entry: WriterRegistration, now_ms: int) -> dict[str, object]:
    role, host = role_and_host(entry.writer)
    started_ms = now_ms if entry.started_ms is None else entry.started_ms
    return {
        "run_id": run_id,
        "name": entry.writer,
        "lane_id": _NO_LANE,
        "role": checked_name("role", entry.role or role),
        "host": checked_name("host", entry.host or host),
        "pid": entry.pid,
        "rank": entry.rank,
        "interval_s": entry.interval_s,
        "started_ms": started_ms,
        "last_ms": started_ms,
        "heard_ms": now_ms,
        "api_key_id": entry.sender.api_key_id,
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
    connection: Connection,
    new: Collection[WriterRegistration],
    runs: dict[RunKey, int],
    projects: dict[ProjectKey, int],
) -> None:
    """Move a run whose first writers named no project to the project that a later writer names.

    Runs whose project was set explicitly, in their `run` section, are not moved.
    """
    project_ids = {
        runs[entry.run_key]: projects[entry.sender.entity_id, project_name(entry.project)]
        for entry in new
        if entry.project and (entry.sender.entity_id, project_name(entry.project)) in projects
    }
    keys = {(entry.sender.entity_id, DEFAULT_PROJECT) for entry in new}
    defaults = set(find_projects(connection, keys).values())
    statement = select(run.c.id).where(
        among(connection, run.c.id, project_ids), among(connection, run.c.project_id, defaults)
    )
    unnamed = [
        run_id for run_id in connection.execute(statement).scalars() if project_ids[run_id] not in defaults
    ]
    documents = read_documents(connection, unnamed, ["run"])
    for run_id in unnamed:
        about = documents.get(SectionKey(run_id, "run", ""))
        if about is None or not about.values.get("project"):
            connection.execute(update(run).where(run.c.id == run_id).values(project_id=project_ids[run_id]))
