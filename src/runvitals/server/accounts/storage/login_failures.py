"""Failed sign-ins in a row, counted by all processes of a server together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from runvitals.server.database.database import StoredTable, add_rows
from runvitals.server.database.tables.sign_in import login_failure


@dataclass(frozen=True, slots=True)
class LoginFailures:
    """The number of failures in a row, and the time of the last one."""

    count: int
    last_ms: int


NONE = LoginFailures(0, 0)


class LoginFailureTable(StoredTable):
    """The table of failed sign-ins. `digest`: of whom or what they are counted by."""

    def get(self, digest: bytes) -> LoginFailures:
        """Return the failures so far."""
        with self._database.read() as connection:
            row = connection.execute(_columns.where(login_failure.c.digest == digest)).first()
        return NONE if row is None else LoginFailures(row.failures, row.last_ms)

    def change(
        self, digest: bytes, changed: Callable[[LoginFailures], LoginFailures]
    ) -> tuple[LoginFailures, LoginFailures]:
        """Change the failures; returns those before and after. Processes do so one after the other."""
        mine = login_failure.c.digest == digest

        def work(connection: Connection) -> tuple[LoginFailures, LoginFailures]:
            add_rows(connection, login_failure, [{"digest": digest, "count": 0, "last_ms": 0}])
            row = connection.execute(_columns.where(mine).with_for_update()).one()
            before = LoginFailures(row.failures, row.last_ms)
            after = changed(before)
            if after.count <= 0:
                connection.execute(delete(login_failure).where(mine))
            elif after != before:
                values = {"count": after.count, "last_ms": after.last_ms}
                connection.execute(update(login_failure).where(mine).values(values))
            return before, after

        return self._database.write(work, durable=False)

    def purge(self, before_ms: int) -> int:
        """Remove failures of which the last is before this time; returns how many."""
        past = delete(login_failure).where(login_failure.c.last_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(past).rowcount)


_columns = select(login_failure.c["count"].label("failures"), login_failure.c.last_ms)
