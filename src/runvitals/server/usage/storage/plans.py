"""Plans: what they include, and their limits; and which plan a team, a user or the organisation has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.tables.usage import entity_plan, plan, plan_limit
from runvitals.store.errors import NotFound

ORGANISATION = 0
"""In place of the id of a team or user: the organisation as a whole."""


class PlanInUse(Exception):
    """A team, a user or the organisation has the plan."""


@dataclass(frozen=True, slots=True)
class PlanLimit:
    """A category in a plan, in its units: hours, kWh, GB, or the currency for `charges`.

    Args:
        limit_units: None: unlimited.
        refuse_new_runs: beyond the limit, new runs are refused; running ones never are.
    """

    category: str
    included: float = 0.0
    limit_units: float | None = None
    refuse_new_runs: bool = False


@dataclass(frozen=True, slots=True)
class UsagePlan:
    """A plan, with its limits."""

    name: str
    description: str
    limits: tuple[PlanLimit, ...]


@dataclass(frozen=True, slots=True)
class AssignedPlan:
    """The plan of a team or user, or of `ORGANISATION`, from a day on."""

    entity_id: int
    valid_from: str
    plan: str


class PlanTable(StoredTable):
    """The plans."""

    def all(self) -> list[UsagePlan]:
        """All plans, by name."""
        with self._database.read() as connection:
            limits: dict[int, list[PlanLimit]] = {}
            for row in connection.execute(select(plan_limit).order_by(plan_limit.c.category)):
                about = PlanLimit(row.category, row.included, row.limit_units, row.refuse_new_runs)
                limits.setdefault(row.plan_id, []).append(about)
            rows = connection.execute(select(plan).order_by(plan.c.name))
            return [UsagePlan(row.name, row.description, tuple(limits.get(row.id, ()))) for row in rows]

    @in_transaction
    def put(self, connection: Connection, new: UsagePlan, by: Actor, now_ms: int) -> None:
        """Create a plan, or replace the one of this name."""
        plan_id = connection.execute(select(plan.c.id).where(plan.c.name == new.name)).scalar()
        values = {"name": new.name, "description": new.description}
        if plan_id is None:
            added = connection.execute(insert(plan).values(values)).inserted_primary_key
            assert added is not None
            plan_id = added[0]
        else:
            connection.execute(update(plan).where(plan.c.id == plan_id).values(values))
            connection.execute(delete(plan_limit).where(plan_limit.c.plan_id == plan_id))
        put_rows(connection, plan_limit, [{"plan_id": plan_id, **asdict(limit)} for limit in new.limits])
        record(connection, now_ms, by, "billing.plan", target=new.name, after=asdict(new))

    @in_transaction
    def remove(self, connection: Connection, name: str, by: Actor, now_ms: int) -> None:
        """Remove a plan; raise NotFound, or PlanInUse while it is assigned."""
        plan_id = _id_of(connection, name)
        has_it = select(entity_plan.c.entity_id).where(entity_plan.c.plan_id == plan_id)
        if connection.execute(has_it.limit(1)).first() is not None:
            raise PlanInUse(f"the plan {name} is assigned: assign another one first")
        connection.execute(delete(plan).where(plan.c.id == plan_id))
        record(connection, now_ms, by, "billing.plan", target=name)

    @in_transaction
    def assign(self, connection: Connection, assigned: AssignedPlan, by: Actor, now_ms: int) -> None:
        """Assign a plan from a month on, or raise NotFound."""
        plan_id = _id_of(connection, assigned.plan)
        row = {"entity_id": assigned.entity_id, "valid_from": assigned.valid_from, "plan_id": plan_id}
        put_rows(connection, entity_plan, [row])
        record(connection, now_ms, by, "billing.plan", target=assigned.plan, after=asdict(assigned))

    def assigned(self) -> Sequence[AssignedPlan]:
        """Who has which plan from which day on, in the order of days."""
        statement = (
            select(entity_plan.c.entity_id, entity_plan.c.valid_from, plan.c.name)
            .join(plan, plan.c.id == entity_plan.c.plan_id)
            .order_by(entity_plan.c.valid_from)
        )
        with self._database.read() as connection:
            return [AssignedPlan(*row) for row in connection.execute(statement)]


def _id_of(connection: Connection, name: str) -> int:
    plan_id = connection.execute(select(plan.c.id).where(plan.c.name == name)).scalar()
    if plan_id is None:
        raise NotFound(f"there is no plan {name!r}")
    return int(plan_id)
