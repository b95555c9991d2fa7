"""Saved views of projects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_LOSSES = ((rows_of("saved_view"), "there are {} saved views: delete them"),)


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "saved_view",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", ordered, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_saved_view"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_saved_view_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_saved_view_user_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_saved_view_project_id_kind", "saved_view", ["project_id", "kind"])
    op.create_index("ix_saved_view_user_id", "saved_view", ["user_id"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: saved views would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("saved_view")
