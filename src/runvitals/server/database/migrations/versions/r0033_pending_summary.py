"""Runs whose latest rows of `log()` may not be in their summaries yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pending_summary",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_pending_summary"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_pending_summary_run_id", ondelete="CASCADE"),
    )


def downgrade() -> None:
    # A server that ends normally leaves no rows here; after a crash only the last second is missing.
    op.drop_table("pending_summary")
