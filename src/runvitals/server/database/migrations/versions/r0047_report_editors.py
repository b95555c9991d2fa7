"""Who is editing reports; reports of clients of W&B without the revision that 0046 once noted for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table. Drop the column where it is: nothing fills it, and it may not be null."""
    op.create_table(
        "report_editor",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_editor_report_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_report_editor_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "user_id", name="pk_report_editor"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_editor_user_id", "report_editor", ["user_id"])
    columns = sa.inspect(op.get_bind()).get_columns("wandb_report")
    if any(column["name"] == "revision" for column in columns):
        op.drop_column("wandb_report", "revision")


def downgrade() -> None:
    """Remove the table: who is editing is noted again a moment later."""
    op.drop_table("report_editor")
