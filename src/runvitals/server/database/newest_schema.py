"""The newest schema of SQLite databases as a script, which creates a database in a tenth of the time that all
revisions take. `scripts/schema` writes it; run it after each change of a revision.
"""

from __future__ import annotations

import os
import re

from sqlalchemy import Connection, text

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations", "newest.sqlite.sql")
_BETWEEN = "\n\n"
_LINE_END = re.compile(r"\s*\n")  # with blank lines: they separate statements
# Without what SQLite creates itself: indexes of constraints, its own tables, and those of the text index.
_DEFINITIONS = """
    SELECT sql FROM sqlite_master
    WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'run_text_fts_*'
    ORDER BY rowid
"""


def script_of(connection: Connection) -> str:
    """The script that creates an empty SQLite database with the same schema and revision."""
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    statements = [_LINE_END.sub("\n", sql.strip()) for (sql,) in connection.execute(text(_DEFINITIONS))]
    statements.append(f"INSERT INTO alembic_version VALUES ('{revision}')")
    return _BETWEEN.join([f"-- revision {revision}", *(f"{statement};" for statement in statements)]) + "\n"


def create(connection: Connection, revision: str) -> bool:
    """Create the schema in an empty SQLite database; returns whether the script is of this revision."""
    with open(PATH, encoding="utf-8") as file:
        first, *statements = file.read().split(_BETWEEN)
    if first != f"-- revision {revision}":
        return False
    for statement in statements:
        connection.exec_driver_sql(statement)
    return True
