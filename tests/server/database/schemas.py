"""The schema of a database, however it came about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, inspect, text

from runvitals.server.database.database import Database

_SQLITE = """
    SELECT name, sql FROM sqlite_master
    WHERE sql IS NOT NULL AND (type <> 'table' OR sql LIKE 'CREATE VIRTUAL%')
    UNION ALL SELECT name, (sql LIKE '%AUTOINCREMENT%') || ' ' || (sql LIKE '%WITHOUT ROWID%')
    FROM sqlite_master WHERE type = 'table'
    UNION ALL SELECT tables.name, keys."from" || ' ' || keys."table" || ' ' || keys.on_delete
    FROM sqlite_master AS tables, pragma_foreign_key_list(tables.name) AS keys WHERE tables.type = 'table'
"""
_POSTGRESQL = """
    SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    UNION ALL SELECT extname, '' FROM pg_extension
    UNION ALL SELECT table_name || '.' || column_name, is_identity || coalesce(column_default, '')
    FROM information_schema.columns WHERE table_schema = 'public'
"""
_SPACES_AND_QUOTES = re.compile(r'[\s"]+')  # SQLite keeps the text of a definition


def schema(database: Database) -> dict[str, list[str]]:
    """Return the parts of each table, in any order, and the definitions outside of tables."""
    with database.read() as connection:
        inspector = inspect(connection)
        # Of all tables at once: on PostgreSQL that is a query each, not one for each table.
        lists: list[tuple[str, Any]] = [
            ("columns", inspector.get_multi_columns()),
            ("unique", inspector.get_multi_unique_constraints()),
            ("checks", inspector.get_multi_check_constraints()),
        ]
        tables = {
            f"{table} {kind}": sorted(map(_line, parts))
            for kind, of_tables in lists
            for (_, table), parts in of_tables.items()
        }
        keys = inspector.get_multi_pk_constraint()
        tables |= {f"{table} primary key": [_line(key)] for (_, table), key in keys.items()}
        return tables | {"definitions": _definitions(connection)}


def _line(part: Mapping[str, object]) -> str:
    """A column or a constraint."""
    return str({name: str(value) for name, value in sorted(part.items()) if value not in (None, [], {}, "")})


def _definitions(connection: Connection) -> list[str]:
    query = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    return sorted(
        f"{name}: {_SPACES_AND_QUOTES.sub(' ', what)}" for name, what in connection.execute(text(query))
    )
