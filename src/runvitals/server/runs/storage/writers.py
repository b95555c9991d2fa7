"""The writers of runs: registration, heartbeats and ends; and the processes that monitors watch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Double, bindparam, case, func, select, update

from runvitals.model.ending import Ending
from runvitals.model.state import ENDED_STATES, is_ended
from runvitals.server.database.database import StoredTable, among, insert
from runvitals.server.database.tables.runs import process, project, run, writer
from runvitals.server.database.text import check_integers, checked_name
from runvitals.server.events.usage_marks import UsageMarks, add_marks
from runvitals.server.runs.storage.run_locks import lock_known_runs, lock_runs
from runvitals.server.runs.storage.run_states import StoredWriter, read_writers, update_run_states
from runvitals.server.runs.storage.writer_registration import (
    RegisteredWriter,
    WriterRegistration,
    find_registered,
    join,
)


@dataclass(frozen=True, slots=True)
class WriterHeartbeat:
    """A heartbeat: `heard_ms` by the server's clock, `last_ms` of the newest record by the writer's.

    `interval_s`: the longest normal time until the next one; None: as before.
    """

    writer_id: int
    heard_ms: int
    last_ms: int
    interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class WriterEnd:
    """A writer's last record: how its host's part of the run ended, and when by the writer's clock."""

    writer_id: int
    ending: Ending
    time_ms: int


@dataclass(frozen=True, slots=True)
class StoredProcess:
    """A process that attached to a run. None: unknown; does not overwrite a known value."""

    run_id: int
    host: str
    pid: int
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    ended_ms: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool | None = None


class WriterTable(StoredTable):
    """The table of writers."""

    def join(self, joining: Sequence[WriterRegistration], now_ms: int) -> list[RegisteredWriter]:
        """Register writers; creates missing runs and projects. Durable.

        May be called repeatedly, by any number of servers at once: the same names always get the same ids.
        The facts of a writer's first registration are kept.

        Raises:
            ValueError: a name that cannot be stored; then none of them is registered.

        Example:
            >>> writer = WriterRegistration("brave-otter-1", "monitor.node1.19f3a")
            >>> [joined] = metadata_store.writers.join([writer], now_ms)
            >>> joined.lane_id
            17
        """
        for registration in joining:
            registration.check()
        with self._database.read() as connection:
            writers = find_registered(connection, joining)
        if all(writers):
            return [registered for registered in writers if registered]
        return self._database.write(lambda connection: join(connection, joining, now_ms))

    def record_heartbeats(
        self, heartbeats: Sequence[WriterHeartbeat], usage: UsageMarks | None = None
    ) -> None:
        """Record heartbeats, and what was noted about usage.

        A power failure may undo the newest ones; the next ones follow soon. Writers of purged runs are
        ignored.
        """

        def work(connection: Connection) -> None:
            if heartbeats:
                _record_heartbeats(connection, heartbeats)
            if usage is not None:
                add_marks(connection, usage)

        if heartbeats or usage:
            self._database.write(work, durable=False)

    def shift_heartbeats(self, now_ms: int, by_ms: int) -> None:
        """Shift the times at which writers were heard, because the clock was set by `by_ms` at `now_ms`.

        Runs lost long before are unchanged: they are lost by either clock.
        """

        def work(connection: Connection) -> None:
            since_ms = min(now_ms, now_ms + by_ms)
            ids = connection.execute(select(run.c.id).where(run.c.alive_until_ms >= since_ms)).scalars()
            locked = lock_runs(connection, list(ids))
            condition = among(connection, writer.c.run_id, locked)
            moved = update(writer).where(condition, writer.c.end_state.is_(None))
            connection.execute(moved.values(heard_ms=writer.c.heard_ms + by_ms))
            update_run_states(connection, locked)

        self._database.write(work, durable=False)

    def cap_heartbeats(self, now_ms: int) -> None:
        """Treat writers heard in the future, by a wrong clock, as heard now."""
        later = select(writer.c.run_id).where(writer.c.heard_ms > now_ms, writer.c.end_state.is_(None))

        def work(connection: Connection) -> None:
            locked = lock_runs(connection, set(connection.execute(later).scalars()))
            condition = among(connection, writer.c.run_id, locked)
            heard = update(writer).where(condition, writer.c.heard_ms > now_ms)
            connection.execute(heard.values(heard_ms=now_ms))
            update_run_states(connection, locked)

        with self._database.read() as connection:
            is_wrong = connection.execute(later.limit(1)).first() is not None
        if is_wrong:
            self._database.write(work, durable=False)

    def record_ends(self, ends: Sequence[WriterEnd]) -> None:
        """Record how writers ended, from their last records. Durable, all or nothing.

        Raises:
            ValueError: a state that is not an ending, or a number that cannot be stored.
        """
        for end in ends:
            if not is_ended(end.ending.state):
                raise ValueError(
                    f"invalid ending {end.ending.state!r}; expected one of {', '.join(ENDED_STATES)}"
                )
            numbers = {"exit_code": end.ending.exit_code, "signal": end.ending.signal, "time_ms": end.time_ms}
            check_integers(f"writer {end.writer_id}", **numbers)
        if ends:
            self._database.write(lambda connection: _record_ends(connection, ends))

    def of_runs(self, run_ids: Iterable[int]) -> dict[int, list[StoredWriter]]:
        """Return the writers of runs, in the order in which they started."""
        with self._database.read() as connection:
            return read_writers(connection, run_ids)

    def lanes(self) -> list[int]:
        """Return the ids under which the samples of all runs are stored."""
        with self._database.read() as connection:
            return list(connection.execute(select(writer.c.lane_id).distinct()).scalars())

    def run_names(self, lanes: Iterable[int]) -> dict[int, str]:
        """Return the runs whose samples are stored under some ids, as `project/run`."""
        statement = (
            select(writer.c.lane_id, project.c.name, run.c.uid)
            .join(run, run.c.id == writer.c.run_id)
            .join(project, project.c.id == run.c.project_id)
        )
        with self._database.read() as connection:
            rows = connection.execute(statement.where(among(connection, writer.c.lane_id, lanes)))
            return {lane: f"{name}/{uid}" for lane, name, uid in rows}

    def record_processes(self, processes: Sequence[StoredProcess]) -> None:
        """Record processes of runs, or more facts about them; None does not overwrite known values. Durable.

        Raises:
            ValueError: a number or a host's name that cannot be stored.
            UnknownRun: one of the runs does not exist; then nothing is recorded.
        """
        numbers = [
            field.name for field in fields(StoredProcess) if field.name not in ("host", "out_of_memory")
        ]
        for entry in processes:
            checked_name("host", entry.host)
            check_integers(f"process {entry.pid}", **{name: getattr(entry, name) for name in numbers})

        def work(connection: Connection) -> None:
            lock_known_runs(connection, {entry.run_id for entry in processes})
            statement = insert(connection, process)
            names = [field.name for field in fields(StoredProcess)[3:]]
            merged = {name: func.coalesce(statement.excluded[name], process.c[name]) for name in names}
            statement = statement.on_conflict_do_update(index_elements=["run_id", "host", "pid"], set_=merged)
            connection.execute(
                statement,
                [{**asdict(entry), "host": checked_name("host", entry.host)} for entry in processes],
            )

        if processes:
            self._database.write(work)

    def processes(self, run_id: int) -> list[StoredProcess]:
        """Return the processes of a run, by rank, then host and pid."""
        with self._database.read() as connection:
            rows = connection.execute(select(process).where(process.c.run_id == run_id))
            processes = [StoredProcess(**row._asdict()) for row in rows]
        return sorted(
            processes, key=lambda entry: (entry.rank is None, entry.rank or 0, entry.host, entry.pid)
        )


def _lock_runs_of(connection: Connection, writer_ids: Iterable[int]) -> list[int]:
    condition = select(writer.c.run_id).where(among(connection, writer.c.id, writer_ids))
    return lock_runs(connection, set(connection.execute(condition).scalars()))


def _later(column: str) -> ColumnElement[int]:
    """Return the later of a row's value and the parameter `new_…`."""
    new = bindparam(f"new_{column}", type_=BigInteger)
    return case((writer.c[column] < new, new), else_=writer.c[column])


def _record_heartbeats(connection: Connection, heartbeats: Sequence[WriterHeartbeat]) -> None:
    runs = _lock_runs_of(connection, {heartbeat.writer_id for heartbeat in heartbeats})
    values: dict[str, Any] = {name: _later(name) for name in ("heard_ms", "last_ms")}
    values["interval_s"] = func.coalesce(bindparam("new_interval_s", type_=Double), writer.c.interval_s)
    rows = [
        {
            "which": heartbeat.writer_id,
            "new_heard_ms": heartbeat.heard_ms,
            "new_last_ms": heartbeat.last_ms,
            "new_interval_s": heartbeat.interval_s,
        }
        for heartbeat in heartbeats
    ]
    connection.execute(update(writer).where(writer.c.id == bindparam("which")).values(values), rows)
    update_run_states(connection, runs)


def _record_ends(connection: Connection, ends: Sequence[WriterEnd]) -> None:
    runs = _lock_runs_of(connection, {end.writer_id for end in ends})
    rows = []
    for end in ends:
        ending = end.ending.as_dict()
        rows.append(
            {"which": end.writer_id, "new_last_ms": end.time_ms, "end_state": ending.pop("state"), **ending}
        )
    values: dict[str, Any] = {
        name: bindparam(name) for name in ("end_state", "exit_code", "signal", "out_of_memory")
    }
    values["last_ms"] = _later("last_ms")
    connection.execute(update(writer).where(writer.c.id == bindparam("which")).values(values), rows)
    update_run_states(connection, runs)
