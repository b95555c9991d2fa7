"""SQLAlchemy compiles each statement once in a process, not once for every store that a test opens: a fifth
of the CPU of tests with a server."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.default import DefaultDialect

_compiled: MutableMapping[Any, Any] = {}


class OneDialect(DefaultDialect):
    """The same object for all engines: compiled statements belong to a dialect object."""

    _only: OneDialect | None = None

    def __new__(cls, **_: Any) -> OneDialect:
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __init__(self, **options: Any) -> None:
        if not vars(self):
            super().__init__(**options)


class OneSqliteDialect(OneDialect, SQLiteDialect_pysqlite):
    supports_statement_cache = True


class OnePostgresqlDialect(OneDialect, PGDialect_psycopg):
    supports_statement_cache = True


def share_statements() -> None:
    """Let all engines of this process that are created from now on share compiled statements."""
    registry.register("sqlite", __name__, OneSqliteDialect.__name__)
    registry.register("postgresql.psycopg", __name__, OnePostgresqlDialect.__name__)
    event.listen(Engine, "engine_connect", _use_shared)


def _use_shared(connection: Connection) -> None:
    if isinstance(connection.dialect, OneDialect):
        connection.execution_options(compiled_cache=_compiled)
