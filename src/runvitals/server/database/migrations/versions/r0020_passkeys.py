"""Passkeys, and failed sign-ins that all processes of a server count together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_LOSSES = (
    (
        rows_of("passkey"),
        "users sign in with {} passkeys: give them passwords, then empty passkey and passkey_owner",
    ),
)


def upgrade() -> None:
    op.create_table(
        "passkey_owner",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("handle", sa.LargeBinary(), nullable=False),
        sa.Column("after_password", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_passkey_owner"),
        sa.UniqueConstraint("handle", name="uq_passkey_owner_handle"),
        _to_user("passkey_owner"),
    )
    op.create_table(
        "passkey",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("transports", sa.Text(), nullable=False),
        sa.Column("backed_up", sa.Boolean(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_used_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_passkey"),
        sa.UniqueConstraint("credential_id", name="uq_passkey_credential_id"),
        _to_user("passkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_passkey_user_id", "passkey", ["user_id"])
    op.create_table(
        "used_challenge",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_used_challenge"),
    )
    op.create_table(
        "login_failure",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_login_failure"),
    )


def downgrade() -> None:
    """Failed sign-ins are forgotten.

    Raises:
        RuntimeError: passkeys would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in ("login_failure", "used_challenge", "passkey", "passkey_owner"):
        op.drop_table(table)


def _to_user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["user_id"], ["user_account.id"], name=f"fk_{table}_user_id", ondelete="CASCADE"
    )
