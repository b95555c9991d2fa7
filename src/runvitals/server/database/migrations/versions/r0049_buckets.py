"""Buckets that keep the files of teams: the same content may be in several."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

_ORDERED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables of buckets, and where each content is."""
    op.create_table(
        "bucket",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", _ORDERED, nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("checked", sa.Text()),
        sa.Column("checked_ms", sa.BigInteger()),
        sa.Column("away_ms", sa.BigInteger()),
        sa.Column("away_reason", sa.Text()),
        sa.ForeignKeyConstraint(
            ["created_by"], ["user_account.id"], name="fk_bucket_created_by", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_bucket"),
        sa.UniqueConstraint("name", name="uq_bucket_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "team_bucket",
        sa.Column("team_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("bucket_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["bucket_id"], ["bucket.id"], name="fk_team_bucket_bucket_id"),
        sa.ForeignKeyConstraint(["team_id"], ["entity.id"], name="fk_team_bucket_team_id"),
        sa.PrimaryKeyConstraint("team_id", name="pk_team_bucket"),
    )
    op.create_index("ix_team_bucket_bucket_id", "team_bucket", ["bucket_id"])
    op.add_column(
        "report_file", sa.Column("place", sa.Integer(), nullable=False, server_default=sa.text("0"))
    )
    with _rebuild_files() as table:
        table.add_column(sa.Column("place", sa.Integer(), nullable=False, server_default=sa.text("0")))
        table.drop_constraint("uq_stored_file_sha256", type_="unique")
        table.create_unique_constraint("uq_stored_file_sha256_place", ["sha256", "place"])


def downgrade() -> None:
    """Remove them, if no team has a bucket."""
    losses = [(rows_of("team_bucket"), "{} teams have buckets of their own, and their files are there")]
    check_nothing_is_lost(op.get_bind(), revision, losses)
    with _rebuild_files() as table:
        table.drop_constraint("uq_stored_file_sha256_place", type_="unique")
        table.drop_column("place")
        table.create_unique_constraint("uq_stored_file_sha256", ["sha256"])
    op.drop_column("report_file", "place")
    op.drop_table("team_bucket")
    op.drop_table("bucket")


def _rebuild_files() -> Any:
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    return op.batch_alter_table(
        "stored_file",
        recreate=recreate,
        reflect_kwargs={"resolve_fks": False},
        table_kwargs={"sqlite_autoincrement": True},
    )
