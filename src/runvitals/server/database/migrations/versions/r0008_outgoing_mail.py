"""The queue of mail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_LOSSES = (
    (
        rows_of("outgoing_mail", "state = 'waiting'"),
        "{} mails wait to be sent: let the server send them, or set their state to 'discarded'",
    ),
)


def upgrade() -> None:
    op.create_table(
        "outgoing_mail",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column(
            "address_key",
            sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("security", sa.Boolean(), nullable=False),
        sa.Column("sealed", sa.LargeBinary()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=False),
        sa.Column("give_up_ms", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_outgoing_mail"),
        sa.CheckConstraint(
            "state IN ('waiting', 'sent', 'failed', 'discarded')", name="ck_outgoing_mail_state"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outgoing_mail_state", "outgoing_mail", ["state", "next_ms"])
    op.create_index("ix_outgoing_mail_address_key", "outgoing_mail", ["address_key", "ended_ms"])


def downgrade() -> None:
    """Which mails were sent is forgotten.

    Raises:
        RuntimeError: mail would not be sent.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("outgoing_mail")
