"""Media records of runs, and the files that runs sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_LOSSES = (
    (rows_of("media"), "runs have {} records of images, tables and so on: delete those runs for good"),
    (rows_of("stored_file"), "runs have sent {} files: delete those runs for good"),
)


def upgrade() -> None:
    op.create_table(
        "media",
        sa.Column("id", BIG_ID, sa.Identity(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("writer_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Double()),
        sa.Column("key", ORDERED_TEXT, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_media"),
        sa.UniqueConstraint("writer_id", "seq", name="uq_media_writer_id_seq"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_media_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["writer_id"], ["writer.id"], name="fk_media_writer_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_media_run_id_key_step_time_ms_id", "media", ["run_id", "key", "step", "time_ms", "id"]
    )
    op.create_table(
        "stored_file",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("sha256", ORDERED_TEXT, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stored_file"),
        sa.UniqueConstraint("sha256", name="uq_stored_file_sha256"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "run_file",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "file_id", name="pk_run_file"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_file_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["file_id"], ["stored_file.id"], name="fk_run_file_file_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_run_file_file_id", "run_file", ["file_id"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: media or files would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("run_file")
    op.drop_table("stored_file")
    op.drop_table("media")
