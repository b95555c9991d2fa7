"""The sample store that a metadata store is paired with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pairing",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("starts", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pairing"),
    )
