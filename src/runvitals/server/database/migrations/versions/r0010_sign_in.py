"""Sign-ins of a command line by a browser."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "device_login",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column(
            "code", sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql"), nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("ip", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.Integer()),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("denied", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_device_login"),
        sa.UniqueConstraint("digest", name="uq_device_login_digest"),
        sa.UniqueConstraint("code", name="uq_device_login_code"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_device_login_user_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Sign-ins that are under way end."""
    op.drop_table("device_login")
