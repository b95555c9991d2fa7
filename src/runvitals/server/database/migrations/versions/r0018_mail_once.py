"""What a queued mail is about, so that servers that share a queue add it once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("outgoing_mail", sa.Column("once_key", ORDERED_TEXT))
    op.create_index("ix_outgoing_mail_once_key", "outgoing_mail", ["once_key"], unique=True)


def downgrade() -> None:
    """Which reminders were sent is forgotten: one more of each may be sent after the next upgrade."""
    op.drop_index("ix_outgoing_mail_once_key", "outgoing_mail")
    op.execute("ALTER TABLE outgoing_mail DROP COLUMN once_key")
