"""Where the audit log is sent, mail about deleted accounts, and pasted keys of token issuers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_LOSSES = (
    (rows_of("audit_webhook"), "the audit log is sent to a webhook: remove it from the organisation"),
    (
        rows_of("jwt_issuer", "pasted_keys IS NOT NULL"),
        "{} token issuers have pasted keys, without which their tokens may not be accepted: remove the keys",
    ),
)


def upgrade() -> None:
    op.create_table(
        "audit_webhook",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("sent_id", sa.BigInteger(), nullable=False),
        sa.Column("gaps", sa.Text(), nullable=False),
        sa.Column("claimed_by", sa.Text()),
        sa.Column("claimed_until_ms", sa.BigInteger()),
        sa.Column("delivered_ms", sa.BigInteger()),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_audit_webhook"),
    )
    op.create_table(
        "deletion_notice",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("deleted_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deletion_notice"),
        sqlite_autoincrement=True,
    )
    op.add_column("jwt_issuer", sa.Column("pasted_keys", sa.Text()))


def downgrade() -> None:
    """Mail about deletions of the last minutes is not sent.

    Raises:
        RuntimeError: the webhook or keys of issuers would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.execute("ALTER TABLE jwt_issuer DROP COLUMN pasted_keys")
    op.drop_table("deletion_notice")
    op.drop_table("audit_webhook")
