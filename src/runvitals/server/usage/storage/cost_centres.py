"""Cost centres, and which one pays for a team, a user or a project from a day on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sqlalchemy import Column, Connection, delete, func, insert, select, update

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.tables.usage import cost_centre, cost_centre_assignment
from runvitals.server.usage.storage.issued_periods import check_open
from runvitals.store.errors import NameTaken, NotFound

Kind = Literal["entity", "project"]
_ACTION = "billing.cost_centre"


@dataclass(frozen=True, slots=True)
class CostCentre:
    """Who pays.

    Args:
        code: its name in the accounts department; no two have the same.
        contact: the address that gets its statements; "": none.
    """

    code: str
    name: str
    address: str = ""
    contact: str = ""
    purchase_order: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class CostCentreAssignment:
    """Which cost centre pays from a day on. `code` None: none, so the team or user itself."""

    kind: Kind
    id: int
    valid_from: str
    code: str | None


class CostCentreTable(StoredTable):
    """The cost centres."""

    def all(self) -> list[CostCentre]:
        """All cost centres, by code."""
        with self._database.read() as connection:
            rows = connection.execute(select(*_columns()).order_by(cost_centre.c.code))
            return [CostCentre(**row._asdict()) for row in rows]

    @in_transaction
    def add(self, connection: Connection, new: CostCentre, by: Actor, now_ms: int) -> CostCentre:
        """Add a cost centre, or raise NameTaken when another one has its code."""
        _check_free(connection, new.code)
        added = connection.execute(insert(cost_centre).values(_about(new))).inserted_primary_key
        assert added is not None
        record(connection, now_ms, by, _ACTION, target=new.code, after=_about(new))
        return replace(new, id=added[0])

    @in_transaction
    def change(
        self, connection: Connection, code: str, changes: dict[str, Any], by: Actor, now_ms: int
    ) -> CostCentre:
        """Change some fields. Statements that were issued keep what they have.

        Raises:
            NotFound: there is no such cost centre.
            NameTaken: another one has the new code.
        """
        before = find_cost_centre(connection, code)
        after = replace(before, **changes)
        if after.code != code:
            _check_free(connection, after.code)
        connection.execute(update(cost_centre).where(cost_centre.c.id == before.id).values(_about(after)))
        old = {name: getattr(before, name) for name in changes}
        record(connection, now_ms, by, _ACTION, target=code, before=old, after=changes)
        return after

    @in_transaction
    def delete(self, connection: Connection, code: str, by: Actor, now_ms: int) -> None:
        """Delete a cost centre with its assignments: who paid before them pays again.

        Raises:
            NotFound: there is no such cost centre.
            PeriodIssued: it would change a month of which a statement was issued.
        """
        before = find_cost_centre(connection, code)
        mine = cost_centre_assignment.c.cost_centre_id == before.id
        since = connection.execute(select(func.min(cost_centre_assignment.c.valid_from)).where(mine))
        if (first := since.scalar()) is not None:
            check_open(connection, first, "cost centres")
        connection.execute(delete(cost_centre_assignment).where(mine))
        connection.execute(delete(cost_centre).where(cost_centre.c.id == before.id))
        record(connection, now_ms, by, _ACTION, target=code, before=_about(before))

    def assignments(self) -> list[CostCentreAssignment]:
        """All assignments, those of each team, user and project in the order of days."""
        column = cost_centre_assignment.c
        statement = (
            select(column.kind, column.id, column.valid_from, cost_centre.c.code)
            .outerjoin(cost_centre, cost_centre.c.id == column.cost_centre_id)
            .order_by(column.kind, column.id, column.valid_from)
        )
        with self._database.read() as connection:
            return [CostCentreAssignment(*row) for row in connection.execute(statement)]

    @in_transaction
    def assign(
        self, connection: Connection, assignment: CostCentreAssignment, name: str, by: Actor, now_ms: int
    ) -> None:
        """Assign a cost centre to the team, user or project called `name`.

        Raises:
            NotFound: there is no such cost centre.
            PeriodIssued: it would change a month of which a statement was issued.
        """
        check_open(connection, assignment.valid_from, "cost centres")
        number = None if assignment.code is None else find_cost_centre(connection, assignment.code).id
        row = {"kind": assignment.kind, "id": assignment.id, "valid_from": assignment.valid_from}
        put_rows(connection, cost_centre_assignment, [{**row, "cost_centre_id": number}])
        about = {assignment.kind: name, "valid_from": assignment.valid_from}
        record(connection, now_ms, by, _ACTION, target=assignment.code, after=about)


def find_cost_centre(connection: Connection, code: str) -> CostCentre:
    """Return the cost centre with a code, or raise NotFound."""
    row = connection.execute(select(*_columns()).where(cost_centre.c.code == code)).first()
    if row is None:
        raise NotFound(f"there is no cost centre {code!r}")
    return CostCentre(**row._asdict())


def _check_free(connection: Connection, code: str) -> None:
    same = select(func.count()).select_from(cost_centre).where(cost_centre.c.code == code)
    if connection.execute(same).scalar_one():
        raise NameTaken(f"there is a cost centre {code!r} already")


def _columns() -> list[Column[Any]]:
    return [cost_centre.c[name] for name in CostCentre.__dataclass_fields__]


def _about(of: CostCentre) -> dict[str, str]:
    return {name: value for name, value in asdict(of).items() if name != "id"}
