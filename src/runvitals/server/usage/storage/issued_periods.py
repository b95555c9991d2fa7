"""Which months have issued statements: what they were computed from does not change any more."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from runvitals.server.database.tables.usage import statement


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
