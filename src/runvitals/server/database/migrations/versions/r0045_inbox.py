"""The bell of the page: up to when users have seen what it shows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "inbox_seen",
        sa.Column("user_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_inbox_seen"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_inbox_seen_user_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Remove the table: everything counts as new again."""
    op.drop_table("inbox_seen")
