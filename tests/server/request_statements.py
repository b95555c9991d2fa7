"""Count the database statements that requests cost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def request_statements() -> Iterator[list[str]]:
    """Collect the statements that requests execute meanwhile, not those of background threads."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        of_request = threading.current_thread().name.startswith("AnyIO")
        if of_request and not statement.startswith(("PRAGMA", "BEGIN")):
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", note)
