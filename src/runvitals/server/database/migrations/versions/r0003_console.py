"""Console output."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_CONSOLE_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "console",
        sa.Column("id", _CONSOLE_ID, sa.Identity(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("writer_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("stream", sa.SmallInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_console"),
        sa.UniqueConstraint("writer_id", "seq", name="uq_console_writer_id_seq"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_console_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["writer_id"], ["writer.id"], name="fk_console_writer_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_console_run_id_time_ms_id", "console", ["run_id", "time_ms", "id"])
    op.create_table(
        "console_kept",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("dropped_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_console_kept"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_console_kept_run_id", ondelete="CASCADE"),
    )
