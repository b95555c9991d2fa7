"""The table of the runs of sweeps."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, func, insert, or_, select, update

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction
from runvitals.server.database.stored_json import stored_list, stored_object
from runvitals.server.database.tables.runs import run
from runvitals.server.database.tables.sweeps import sweep, sweep_agent, sweep_run
from runvitals.server.runs.storage.run_locks import lock_known_runs
from runvitals.server.sweeps.storage.rows import UNENDED, SweepRun
from runvitals.server.sweeps.storage.sweeps import random_name


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run of a sweep ended. `value`: of the sweep's metric; None: the run never logged it."""

    value: float | None
    parameters: Mapping[str, Any] | None


class SweepRunTable(StoredTable):
    """The table of the runs of sweeps.

    Example:
        >>> runs = metadata_store.sweeps.runs
        >>> runs.assign(sweep.id, 0, {"lr": 0.1}, agent.id, now_ms).run_name
        'k3v9x2mq'
    """

    def unended(self, sweep_id: int) -> list[SweepRun]:
        """The runs of a sweep that have not ended, the first one first."""
        return self._read_runs(sweep_run.c.sweep_id == sweep_id, sweep_run.c.state.in_(UNENDED))

    def named(self, sweep_id: int, run_names: Collection[str]) -> list[SweepRun]:
        """Those of the runs with these names that have not ended."""
        names = [plain_text(name) for name in run_names]
        return self._read_runs(
            sweep_run.c.sweep_id == sweep_id, sweep_run.c.run_name.in_(names), sweep_run.c.state.in_(UNENDED)
        )

    def newest(self, sweep_id: int, limit: int) -> list[SweepRun]:
        """The newest runs of a sweep, and the best ones by either goal, the first one first."""
        mine = sweep_run.c.sweep_id == sweep_id
        ids = select(sweep_run.c.id).where(mine)
        measured = ids.where(sweep_run.c.value.is_not(None))
        chosen = [
            ids.order_by(sweep_run.c.id.desc()).limit(limit),
            measured.order_by(sweep_run.c.value).limit(1),
            measured.order_by(sweep_run.c.value.desc()).limit(1),
        ]
        with self._database.read() as connection:
            numbers = {number for statement in chosen for number in connection.execute(statement).scalars()}
            rows = (
                select(sweep_run).where(among(connection, sweep_run.c.id, numbers)).order_by(sweep_run.c.id)
            )
            return [_run(row) for row in connection.execute(rows)]

    def marks(self, sweep_id: int, limit: int) -> list[tuple[int, tuple[float, ...]]]:
        """The ids and marks of the newest runs that have some."""
        statement = (
            select(sweep_run.c.id, sweep_run.c.marks)
            .where(sweep_run.c.sweep_id == sweep_id, sweep_run.c.marks != "[]")
            .order_by(sweep_run.c.id.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return [(number, tuple(json.loads(marks))) for number, marks in connection.execute(statement)]

    def count(self, sweep_id: int) -> int:
        """How many runs a sweep has, those included that have not begun."""
        counted = select(func.count()).select_from(sweep_run).where(sweep_run.c.sweep_id == sweep_id)
        with self._database.read() as connection:
            return int(connection.execute(counted).scalar_one())

    def best_value(self, sweep_id: int, minimizes: bool) -> float | None:
        """The best value of the metric; None: no run has one."""
        chosen = func.min(sweep_run.c.value) if minimizes else func.max(sweep_run.c.value)
        with self._database.read() as connection:
            value: float | None = connection.execute(
                select(chosen).where(sweep_run.c.sweep_id == sweep_id)
            ).scalar()
        return value

    def best(self, sweep_id: int, minimizes: bool) -> SweepRun | None:
        """The run with the best value of the metric; None: no run has one."""
        mine = (sweep_run.c.sweep_id == sweep_id, sweep_run.c.value.is_not(None))
        order = sweep_run.c.value if minimizes else sweep_run.c.value.desc()
        with self._database.read() as connection:
            row = connection.execute(
                select(sweep_run).where(*mine).order_by(order, sweep_run.c.id).limit(1)
            ).first()
        return None if row is None else _run(row)

    def page(self, sweep_id: int, skip: int, limit: int) -> list[SweepRun]:
        """A page of the runs of a sweep, the newest first."""
        mine = select(sweep_run).where(sweep_run.c.sweep_id == sweep_id)
        with self._database.read() as connection:
            rows = connection.execute(mine.order_by(sweep_run.c.id.desc()).offset(skip).limit(limit))
            return [_run(row) for row in rows]

    def sweeps_of(self, run_ids: Collection[int]) -> dict[int, str]:
        """The names of the sweeps that runs belong to, by the ids of the runs."""
        with self._database.read() as connection:
            statement = (
                select(sweep_run.c.run_id, sweep.c.name)
                .join(sweep, sweep.c.id == sweep_run.c.sweep_id)
                .where(among(connection, sweep_run.c.run_id, run_ids))
            )
            return {row.run_id: row.name for row in connection.execute(statement)}

    def of_agent(self, agent_id: int, limit: int) -> list[SweepRun]:
        """The runs that an agent got to start, the first one first."""
        return self._read_runs(sweep_run.c.agent_id == agent_id)[:limit]

    @in_transaction
    def assign(
        self,
        connection: Connection,
        sweep_id: int,
        position: int,
        parameters: Mapping[str, Any],
        agent_id: int,
        now_ms: int,
    ) -> SweepRun | None:
        """A new run with parameters that the search has chosen; None if another agent has got this place."""
        row = {
            "sweep_id": sweep_id,
            "run_name": random_name(),
            "place": position,
            "agent_id": agent_id,
            "tries": 1,
            "state": "assigned",
            "parameters": json.dumps(dict(parameters)),
            "marks": "[]",
            "created_ms": now_ms,
        }
        claim = (
            update(sweep)
            .where(sweep.c.id == sweep_id, sweep.c.places == position)
            .values(places=position + 1)
        )
        if not connection.execute(claim).rowcount:
            return None
        return _run(connection.execute(insert(sweep_run).values(row).returning(sweep_run)).one())

    @in_transaction
    def reassign(self, connection: Connection, run: SweepRun, agent_id: int) -> SweepRun | None:
        """Let an agent start a run that has not begun; None if that has changed meanwhile."""
        statement = (
            update(sweep_run)
            .where(
                sweep_run.c.id == run.id,
                sweep_run.c.state == "assigned",
                sweep_run.c.tries == run.tries,
                sweep_run.c.agent_id.is_not_distinct_from(run.agent_id),
            )
            .values(agent_id=agent_id, tries=run.tries + 1)
            .returning(sweep_run)
        )
        row = connection.execute(statement).first()
        return None if row is None else _run(row)

    @in_transaction
    def begin(self, connection: Connection, sweep_id: int, run_name: str, run_id: int, now_ms: int) -> None:
        """Note that a run has begun, or was resumed. One that the server did not plan joins the sweep.

        Raises:
            UnknownRun: the run does not exist.
        """
        name = plain_text(run_name)
        mine = (sweep_run.c.sweep_id == sweep_id, sweep_run.c.run_name == name)
        begun = case((sweep_run.c.state == "stopping", "stopping"), else_="begun")
        statement = update(sweep_run).where(*mine).values(run_id=run_id, state=begun)
        row = {
            "sweep_id": sweep_id,
            "run_name": name,
            "run_id": run_id,
            "tries": 0,
            "state": "begun",
            "marks": "[]",
            "created_ms": now_ms,
        }
        lock_known_runs(connection, {run_id})
        add_rows(connection, sweep_run, [row])
        connection.execute(statement)
        started = (sweep.c.id == sweep_id, sweep.c.state == "pending")
        connection.execute(update(sweep).where(*started).values(state="running"))

    def adopt(self, sweep_id: int) -> None:
        """Note which of the runs that were to begin have arrived: those of the project with their names."""
        arrived = (
            select(run.c.id)
            .join(sweep, sweep.c.project_id == run.c.project_id)
            .where(sweep.c.id == sweep_run.c.sweep_id, run.c.uid == sweep_run.c.run_name)
            .correlate(sweep_run)
            .scalar_subquery()
        )
        waiting = (sweep_run.c.sweep_id == sweep_id, sweep_run.c.state == "assigned")
        statement = (
            update(sweep_run).where(*waiting, arrived.is_not(None)).values(run_id=arrived, state="begun")
        )
        self._database.write(lambda connection: connection.execute(statement))

    def mark(self, run_id: int, marks: Sequence[float]) -> None:
        """Keep the marks of a run, by the id of its row."""
        statement = update(sweep_run).where(sweep_run.c.id == run_id)
        values = {"marks": json.dumps(list(marks))}
        self._database.write(lambda connection: connection.execute(statement.values(values)), durable=False)

    def stop(self, run_id: int) -> None:
        """Note that a run is to end, by the id of its row."""
        running = (sweep_run.c.id == run_id, sweep_run.c.state == "begun")
        statement = update(sweep_run).where(*running).values(state="stopping")
        self._database.write(lambda connection: connection.execute(statement))

    def give_up(self, run_id: int) -> None:
        """Note that a run never began, by the id of its row."""
        waiting = (sweep_run.c.id == run_id, sweep_run.c.state == "assigned")
        statement = update(sweep_run).where(*waiting).values(state="ended")
        self._database.write(lambda connection: connection.execute(statement))

    def end(self, outcomes: Mapping[int, RunOutcome]) -> None:
        """Note how runs ended, by the ids of their rows."""

        def work(connection: Connection) -> None:
            for number, outcome in sorted(outcomes.items()):
                values: dict[str, Any] = {"state": "ended", "value": outcome.value}
                if outcome.parameters is not None:
                    values["parameters"] = json.dumps(dict(outcome.parameters))
                connection.execute(update(sweep_run).where(sweep_run.c.id == number).values(values))

        if outcomes:
            self._database.write(work)

    def abandoned(self, sweep_id: int, heard_before_ms: int) -> SweepRun | None:
        """The first run that has not begun and whose agent is silent for long; None: there is none."""
        silent = or_(sweep_agent.c.id.is_(None), sweep_agent.c.heard_ms < heard_before_ms)
        statement = (
            select(sweep_run)
            .outerjoin(sweep_agent, sweep_agent.c.id == sweep_run.c.agent_id)
            .where(sweep_run.c.sweep_id == sweep_id, sweep_run.c.state == "assigned", silent)
            .order_by(sweep_run.c.id)
            .limit(1)
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else _run(row)

    def _read_runs(self, *conditions: ColumnElement[bool]) -> list[SweepRun]:
        statement = select(sweep_run).where(*conditions).order_by(sweep_run.c.id)
        with self._database.read() as connection:
            return [_run(row) for row in connection.execute(statement)]


def _run(row: Row[Any]) -> SweepRun:
    values = row._asdict()
    parameters = values["parameters"]
    values["parameters"] = (
        None if parameters is None else stored_object(parameters, "the parameters of a run of a sweep")
    )
    values["marks"] = tuple(stored_list(values["marks"], "the marks of a run of a sweep"))
    return SweepRun(**values)
