"""The table of agents: processes that start the runs of sweeps."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.tables.sweeps import sweep, sweep_agent, sweep_run
from runvitals.server.sweeps.storage.rows import SweepAgent, UnknownSweep

MAX_AGENTS: Final = 10_000
"""Of a sweep. The ones that were heard from longest ago make room."""
_MAX_HOST: Final = 256


class AgentTable(StoredTable):
    """The table of agents."""

    @in_transaction
    def add(self, connection: Connection, sweep_id: int, host: str, now_ms: int) -> SweepAgent:
        """Add an agent to a sweep, or raise UnknownSweep."""
        row = {"sweep_id": sweep_id, "host": plain_text(host)[:_MAX_HOST], "created_ms": now_ms}
        if connection.execute(select(sweep.c.id).where(sweep.c.id == sweep_id)).first() is None:
            raise UnknownSweep(f"there is no sweep with the id {sweep_id}")
        _make_room(connection, sweep_id)
        added = insert(sweep_agent).values(**row, heard_ms=now_ms).returning(sweep_agent)
        return _to_agent(connection.execute(added).one())

    def get(self, agent_id: int) -> SweepAgent | None:
        """An agent; None if there is none, because its sweep was deleted."""
        with self._database.read() as connection:
            row = connection.execute(select(sweep_agent).where(sweep_agent.c.id == agent_id)).first()
        return None if row is None else _to_agent(row)

    def of_sweep(self, sweep_id: int) -> list[tuple[SweepAgent, int]]:
        """The agents of a sweep, the first one first, and how many runs each got to start."""
        statement = (
            select(sweep_agent, func.count(sweep_run.c.id).label("runs"))
            .outerjoin(sweep_run, sweep_run.c.agent_id == sweep_agent.c.id)
            .where(sweep_agent.c.sweep_id == sweep_id)
            .group_by(*sweep_agent.c)
            .order_by(sweep_agent.c.id)
        )
        with self._database.read() as connection:
            return [(_to_agent(row), int(row.runs)) for row in connection.execute(statement)]

    def count_since(self, sweep_id: int, heard_ms: int) -> int:
        """How many agents of a sweep were heard from since a time."""
        conditions = (sweep_agent.c.sweep_id == sweep_id, sweep_agent.c.heard_ms >= heard_ms)
        with self._database.read() as connection:
            return int(connection.execute(select(func.count()).where(*conditions)).scalar_one())

    def heard(self, agent_id: int, now_ms: int) -> None:
        """Note that an agent lives."""
        statement = update(sweep_agent).where(sweep_agent.c.id == agent_id).values(heard_ms=now_ms)
        self._database.write(lambda connection: connection.execute(statement), durable=False)


def _make_room(connection: Connection, sweep_id: int) -> None:
    mine = sweep_agent.c.sweep_id == sweep_id
    kept = select(sweep_agent.c.id).where(mine).order_by(sweep_agent.c.heard_ms.desc())
    oldest = connection.execute(kept.offset(MAX_AGENTS - 1)).scalars().all()
    if oldest:
        connection.execute(delete(sweep_agent).where(sweep_agent.c.id.in_(oldest)))


def _to_agent(row: Row[Any]) -> SweepAgent:
    return SweepAgent(row.id, row.sweep_id, row.host, row.created_ms, row.heard_ms)
