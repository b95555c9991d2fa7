"""Reports of clients of W&B: without the revision that the first form of revision 0046 noted for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the column where it is: nothing fills it, and it may not be null."""
    columns = sa.inspect(op.get_bind()).get_columns("wandb_report")
    if any(column["name"] == "revision" for column in columns):
        op.drop_column("wandb_report", "revision")


def downgrade() -> None:
    """Keep the table as it is, which is that of revision 0046."""
