"""How many requests users and service accounts made, by day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "usage_request_day",
        sa.Column("owner_kind", ordered, nullable=False),
        sa.Column("owner_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", ordered, nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_kind", "owner_id", "day", name="pk_usage_request_day"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_request_day_day", "usage_request_day", ["day"])


def downgrade() -> None:
    # As the counts of what was received: an earlier server works without them.
    op.drop_table("usage_request_day")
