"""Drafts of any mail, where there was a table of users who were deleted and had got no mail yet."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

_NEW = sa.table(
    "mail_draft", *(sa.column(name) for name in ("address", "message", "time_zone", "created_ms"))
)


def upgrade() -> None:
    """Replace notices of deletions by drafts of any mail."""
    connection = op.get_bind()
    op.create_table(
        "mail_draft",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_mail_draft"),
        sqlite_autoincrement=True,
    )
    waiting = sa.text("SELECT name, address, deleted_ms FROM deletion_notice ORDER BY id")
    for name, address, deleted_ms in connection.execute(waiting).all():
        values = {"address": address, "message": _account_deleted(name), "created_ms": deleted_ms}
        connection.execute(sa.insert(_NEW).values(values))
    op.drop_table("deletion_notice")


def downgrade() -> None:
    """Restore the table of notices, if no draft would be lost."""
    losses = (
        (rows_of("mail_draft"), "{} mails wait for a server to send them: start one, or wait for a day"),
    )
    check_nothing_is_lost(op.get_bind(), revision, losses)
    op.create_table(
        "deletion_notice",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("deleted_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deletion_notice"),
        sqlite_autoincrement=True,
    )
    op.drop_table("mail_draft")


def _account_deleted(name: str) -> str:
    text = f"The account {name} was deleted, with its keys, sessions and personal projects."
    message = {"kind": "account_deleted", "subject": "Your account was deleted", "paragraphs": [text]}
    return json.dumps({**message, "security": True})
