"""The generation of rights: a number that every change of rights raises, in the same transaction."""

from __future__ import annotations

from sqlalchemy import Connection, select

from runvitals.server.database.database import Database, insert
from runvitals.server.database.tables.accounts import access_generation

_ROW = 1


def rights_changed(connection: Connection) -> None:
    """Make all processes forget the rights that they cached, once this transaction is committed."""
    first = insert(connection, access_generation).values(id=_ROW, number=1)
    number = access_generation.c.number + 1
    connection.execute(first.on_conflict_do_update(index_elements=["id"], set_={"number": number}))


def current_generation(database: Database) -> int:
    """The generation as it is committed; 0 before the first change."""
    with database.read() as connection:
        return int(connection.execute(select(access_generation.c.number)).scalar() or 0)
