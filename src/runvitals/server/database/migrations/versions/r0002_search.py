"""A trigram index of the runs' search texts."""

from __future__ import annotations

from alembic import op
from sqlalchemy.exc import ProgrammingError

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# The index contains neither a copy of the text (`content`) nor positions (`detail`), which saves three
# quarters of its size; searches for long words also check the texts found. Triggers keep it up to date: a
# removal needs the old text.
_SQLITE = (
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
    "INSERT INTO run_text_fts(run_text_fts) VALUES ('rebuild')",
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for statement in _SQLITE:
            op.execute(statement)
        return
    try:
        op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except ProgrammingError as error:
        raise RuntimeError(
            "the metadata store requires the PostgreSQL extension pg_trgm, which this user may not create; "
            "run CREATE EXTENSION pg_trgm in this database as a superuser"
        ) from error
    op.execute("CREATE INDEX ix_run_text_trigram ON run_text USING gin (text gin_trgm_ops)")
