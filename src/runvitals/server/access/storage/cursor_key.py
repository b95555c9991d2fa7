"""The key that signs cursors of lists. It is stored, so that pages go on after a restart of the server."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, select

from runvitals.server.database.database import Database, add_rows
from runvitals.server.database.tables.accounts import organisation_setting

CURSOR_KEY = "cursor_key"


def cursor_key(database: Database) -> bytes:
    """The key, which is created at first use."""
    stored = select(organisation_setting.c.value).where(organisation_setting.c.name == CURSOR_KEY)
    with database.read() as connection:
        found: str | None = connection.execute(stored).scalar()
    if found is None:
        # JSON, as all values of this table.
        row = {"name": CURSOR_KEY, "value": f'"{secrets.token_hex(32)}"', "set_ms": 0}

        def work(connection: Connection) -> str:
            add_rows(connection, organisation_setting, [row])
            return str(connection.execute(stored).scalar_one())

        found = database.write(work)
    return found.encode("ascii")
