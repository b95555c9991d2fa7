"""The organisation's settings. A setting without a row has its default."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import Database, StoredTable, add_rows, in_transaction, put_rows
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import organisation_setting
from runvitals.server.database.tables.usage import statement
from runvitals.store.errors import SettingFixed

CURSOR_KEY = "cursor_key"
SCIM_SECRET = "scim_secret_digest"
SCIM_USED = "scim_used_ms"
SCIM_SETTINGS = (SCIM_SECRET, SCIM_USED)
"""The row that no user sets: the key that signs cursors of lists, so that pages go on after a restart."""


class SettingTable(StoredTable):
    """The table of settings, as JSON values by name. Names and values are checked by the caller.

    Attributes:
        fixed: settings from a file, which take precedence over the table in this process.
        fixed_by: the name of that file.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.fixed: Mapping[str, Any] = {}
        self.fixed_by: str | None = None

    def fix(self, settings: Mapping[str, Any], by: str) -> None:
        """Let settings from a file take precedence. Call it before anything reads the settings."""
        self.fixed, self.fixed_by = dict(settings), by

    def all(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults."""
        with self._database.read() as connection:
            return {**_all(connection), **self.fixed}

    def anonymises(self) -> bool:
        """Return whether deletions of accounts remove the names of their users from the audit log."""
        return self.all().get("audit_anonymise") is True

    @in_transaction
    def put(
        self,
        connection: Connection,
        changes: Mapping[str, Any],
        by: Actor,
        now_ms: int,
        secret: frozenset[str] = frozenset(),
    ) -> None:
        """Change settings. The audit log gets the values of all that are not `secret`.

        Raises:
            SettingFixed: statements were issued with another currency or time zone.
        """
        _check_fixed(connection, changes)
        before = _all(connection)
        rows = [
            {"name": name, "value": json.dumps(value), "set_ms": now_ms} for name, value in changes.items()
        ]
        put_rows(connection, organisation_setting, rows)
        old = {name: "…" if name in secret else before.get(name) for name in changes}
        new = {name: "…" if name in secret else value for name, value in changes.items()}
        record(connection, now_ms, by, "org.settings", before=old, after=new)
        rights_changed(connection)


def _all(connection: Connection) -> dict[str, Any]:
    rows = connection.execute(select(organisation_setting.c.name, organisation_setting.c.value))
    return {row.name: json.loads(row.value) for row in rows}


def cursor_key(database: Database) -> bytes:
    """Return the key that signs cursors of lists; create it at first use."""
    stored = select(organisation_setting.c.value).where(organisation_setting.c.name == CURSOR_KEY)
    with database.read() as connection:
        key: str | None = connection.execute(stored).scalar()
    if key is None:
        # JSON, as all values of this table.
        row = {"name": CURSOR_KEY, "value": f'"{secrets.token_hex(32)}"', "set_ms": 0}

        def work(connection: Connection) -> str:
            add_rows(connection, organisation_setting, [row])
            return str(connection.execute(stored).scalar_one())

        key = database.write(work)
    return key.encode("ascii")


def _check_fixed(connection: Connection, changes: Mapping[str, Any]) -> None:
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
