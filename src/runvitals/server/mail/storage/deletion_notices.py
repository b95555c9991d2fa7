"""Users who were deleted where no mail can be sent, until a server that sends mail writes to them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from runvitals.server.database.database import Database
from runvitals.server.database.tables.requests import deletion_notice


@dataclass(frozen=True, slots=True)
class DeletionNotice:
    """A user who was deleted, with the primary address of then."""

    id: int
    name: str
    address: str
    deleted_ms: int


class DeletionNoticeTable:
    """The table of these users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[DeletionNotice]:
        """Those who have not got a mail yet."""
        columns = [deletion_notice.c[name] for name in DeletionNotice.__dataclass_fields__]
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).order_by(deletion_notice.c.id))
            return [DeletionNotice(**row._asdict()) for row in rows]

    def remove(self, notice_id: int) -> None:
        """Forget a user who has got the mail. Removing it twice has no effect."""
        mine = delete(deletion_notice).where(deletion_notice.c.id == notice_id)
        self._database.write(lambda connection: connection.execute(mine))

    def purge(self, before_ms: int) -> int:
        """Forget those deleted before a time; returns how many."""
        old = delete(deletion_notice).where(deletion_notice.c.deleted_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)


def add_notice(connection: Connection, name: str, address: str, now_ms: int) -> None:
    """Note a user, in the transaction of the deletion."""
    values = {"name": name, "address": address, "deleted_ms": now_ms}
    connection.execute(insert(deletion_notice).values(values))
