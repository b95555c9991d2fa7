"""Which months have issued statements: what they were computed from does not change any more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from runvitals.server.database.tables.usage import statement
from runvitals.store.errors import SettingFixed


class PeriodIssued(Exception):
    """The change applies to days of a statement that was issued."""


def check_open(connection: Connection, day: str, what: str = "prices", *, inclusive: bool = True) -> None:
    """Check that no statement was issued for this day or later.

    Args:
        what: what is to be changed, for the error.
        inclusive: False: only days after this one must be open.

    Raises:
        PeriodIssued: there is one. Statements that were cancelled do not count.
    """
    issued = select(func.max(statement.c.period)).where(statement.c.state == "issued")
    newest = connection.execute(issued).scalar()
    if newest is not None and (day[:7] <= newest if inclusive else day < f"{newest}-31"):
        raise PeriodIssued(f"a statement for {newest} was issued: {what} may change from the next month on")


def check_fixed(connection: Connection, changes: Mapping[str, Any]) -> None:
    """Check that changes of settings leave the currency and the time zone of statements as they are.

    Raises:
        SettingFixed: they do not.
    """
    if not changes.keys() & {"currency", "time_zone"}:
        return
    columns = statement.c.currency, statement.c.settlement
    row = connection.execute(select(*columns).where(statement.c.number.is_not(None)).limit(1)).first()
    if row is None:
        return
    for name, value in (("currency", row.currency), ("time_zone", json.loads(row.settlement)["time_zone"])):
        if changes.get(name, value) != value:
            raise SettingFixed(f"{name} stays {value}: statements were issued with it")
