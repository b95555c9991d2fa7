"""What filters of runs need: notes, hosts, and which runs have system statistics."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from runvitals.model.names import plain_text

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_NOTE_CHARACTERS = 2000
_AT_ONCE = 1000


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table("run_note", *_of_run("run_note"), sa.Column("text", ordered, nullable=False))
    op.create_table(
        "run_statistics",
        *_of_run("run_statistics"),
        sa.Column("as_of_ms", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.SmallInteger(), nullable=False),
    )
    op.create_index("ix_writer_host_run_id", "writer", ["host", "run_id"])
    _copy_notes(op.get_bind())


def downgrade() -> None:
    """Everything here is derived from what stays."""
    statistics = "SELECT id FROM field WHERE name LIKE 'system.%'"
    op.execute(f"DELETE FROM run_field WHERE field_id IN ({statistics})")
    op.execute("DELETE FROM field WHERE name LIKE 'system.%'")
    op.drop_index("ix_writer_host_run_id", "writer")
    op.drop_table("run_statistics")
    op.drop_table("run_note")


def _of_run(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=f"fk_{table}_run_id", ondelete="CASCADE"),
    ]


def _copy_notes(connection: sa.Connection) -> None:
    """Copy the notes from the sections of the runs, some at a time."""
    part = sa.text(
        "SELECT run_id, body FROM section WHERE name = 'run' AND host = '' AND run_id > :after "
        "ORDER BY run_id LIMIT :at_once"
    )
    insert = sa.text("INSERT INTO run_note (run_id, text) VALUES (:run_id, :text)")
    after = -1
    while rows := connection.execute(part, {"after": after, "at_once": _AT_ONCE}).all():
        after = rows[-1][0]
        noted = [(run_id, json.loads(body).get("notes")) for run_id, body in rows if '"notes"' in body]
        copies = [
            {"run_id": run_id, "text": plain_text(str(notes)[:_NOTE_CHARACTERS])}
            for run_id, notes in noted
            if notes
        ]
        if copies:
            connection.execute(insert, copies)
