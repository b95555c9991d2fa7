"""Creates the newest schema in an empty database, in one step: from the definitions of the tables.

Databases of earlier revisions get the same one from the revisions in `migrations/versions/`.
"""

from __future__ import annotations

from sqlalchemy import Connection, text
from sqlalchemy.exc import ProgrammingError

from runvitals.server.database.tables import metadata
from runvitals.store.errors import MetadataStoreError

# A trigram index of the runs' search texts. SQLite's contains neither a copy of the text (`content`) nor
# positions (`detail`), which saves three quarters of its size; searches for long words also check the texts
# found. Triggers keep it up to date: a removal needs the old text.
_SQLITE_SEARCH: tuple[str, ...] = (
    """CREATE VIRTUAL TABLE run_text_fts USING fts5(
        text, content='run_text', content_rowid='run_id', detail='none', tokenize='trigram case_sensitive 1'
    )""",
    "CREATE VIRTUAL TABLE run_text_terms USING fts5vocab('run_text_fts', 'instance')",
    """CREATE TRIGGER run_text_added AFTER INSERT ON run_text BEGIN
        INSERT INTO run_text_fts(rowid, text) VALUES (new.run_id, new.text);
    END""",
    """CREATE TRIGGER run_text_removed AFTER DELETE ON run_text BEGIN
        INSERT INTO run_text_fts(run_text_fts, rowid, text) VALUES ('delete', old.run_id, old.text);
    END""",
    """CREATE TRIGGER run_text_changed AFTER UPDATE ON run_text BEGIN
        INSERT INTO run_text_fts(run_text_fts, rowid, text) VALUES ('delete', old.run_id, old.text);
        INSERT INTO run_text_fts(rowid, text) VALUES (new.run_id, new.text);
    END""",
)
_POSTGRESQL_SEARCH = ("CREATE INDEX ix_run_text_trigram ON run_text USING gin (text gin_trgm_ops)",)
_REVISION = """CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def create(connection: Connection, revision: str) -> None:
    """Create all tables in an empty database, which is then at a revision.

    Raises:
        MetadataStoreError: PostgreSQL's user may not create an extension that is needed.
    """
    if connection.dialect.name == "sqlite":
        search = _SQLITE_SEARCH
    else:
        search = _POSTGRESQL_SEARCH
        _create_trigrams(connection)
        _limit_indexes()
    metadata.create_all(connection, checkfirst=False)
    for statement in (*search, _REVISION):
        connection.exec_driver_sql(statement)
    connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": revision})


def _create_trigrams(connection: Connection) -> None:
    try:
        connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except ProgrammingError as error:
        raise MetadataStoreError(
            "the metadata store requires the PostgreSQL extension pg_trgm, which this user may not create; "
            "run CREATE EXTENSION pg_trgm in this database as a superuser"
        ) from error


def _limit_indexes() -> None:
    """Give indexes of some rows the same condition as on SQLite: see `unique_where`."""
    for table in metadata.tables.values():
        for index in table.indexes:
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
