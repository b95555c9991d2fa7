"""SQLAlchemy compiles each statement once in a process, not once for every store that a test opens: a fifth
of the CPU of tests with a server."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

_compiled: MutableMapping[Any, Any] = {}


class OneSqliteDialect(SQLiteDialect_pysqlite):
    """The same object for all engines: compiled statements belong to a dialect object."""

    supports_statement_cache = True
    _only: OneSqliteDialect | None = None

    def __new__(cls, **_: Any) -> OneSqliteDialect:
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __init__(self, **options: Any) -> None:
        if not vars(self):
            super().__init__(**options)


def share_statements() -> None:
    """Let all engines of this process that are created from now on share compiled statements."""
    registry.register("sqlite", __name__, OneSqliteDialect.__name__)
    event.listen(Engine, "engine_connect", _use_shared)


def _use_shared(connection: Connection) -> None:
    if isinstance(connection.dialect, OneSqliteDialect):
        connection.execution_options(compiled_cache=_compiled)
