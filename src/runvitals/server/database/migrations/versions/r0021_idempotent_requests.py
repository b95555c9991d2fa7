"""Requests that came with an idempotency key, and their encrypted responses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idempotent_request",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("attempt", sa.LargeBinary(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("answer", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("digest", name="pk_idempotent_request"),
    )
    op.create_index(
        "ix_idempotent_request_principal_started_ms", "idempotent_request", ["principal", "started_ms"]
    )
    op.create_index("ix_idempotent_request_started_ms", "idempotent_request", ["started_ms"])


def downgrade() -> None:
    """The requests of the last day are forgotten: repeated ones are carried out again."""
    op.drop_table("idempotent_request")
