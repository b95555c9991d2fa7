"""Signing in by a provider, and service accounts that show another service's tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

_LOSSES = (
    (
        rows_of("login"),
        "users can sign in by a provider, with {} logins: give them passwords, then empty login",
    ),
    (rows_of("group_membership"), "{} memberships came with groups of a provider: empty group_membership"),
    (
        rows_of("external_identity"),
        "{} service accounts show tokens of another service: delete these accounts",
    ),
    (rows_of("jwt_issuer"), "tokens of {} other services are accepted: delete these issuers"),
)


def upgrade() -> None:
    _logins()
    _issuers()


def downgrade() -> None:
    """Sign-ins that are under way end.

    Raises:
        RuntimeError: logins, memberships by groups, or issuers of tokens would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in (
        "external_identity",
        "jwt_issuer",
        "group_membership",
        "login_offer",
        "sign_in_attempt",
        "login",
    ):
        op.drop_table(table)


def _logins() -> None:
    op.create_table(
        "login",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("provider", ORDERED_TEXT, nullable=False),
        sa.Column("issuer", ORDERED_TEXT, nullable=False),
        sa.Column("subject", ORDERED_TEXT, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("address_seen", sa.Text()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_used_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_login"),
        sa.UniqueConstraint("issuer", "subject", name="uq_login_issuer"),
        _to("login", "user_id", "user_account.id", "CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_login_user_id", "login", ["user_id"])
    op.create_table(
        "sign_in_attempt",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("browser_digest", sa.LargeBinary(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Integer()),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sign_in_attempt"),
        sa.UniqueConstraint("digest", name="uq_sign_in_attempt_digest"),
        _to("sign_in_attempt", "user_id", "user_account.id", "CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "login_offer",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("issuer", ORDERED_TEXT, nullable=False),
        sa.Column("subject", ORDERED_TEXT, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("address_seen", sa.Text()),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_login_offer"),
        sa.UniqueConstraint("digest", name="uq_login_offer_digest"),
        _to("login_offer", "user_id", "user_account.id", "CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "group_membership",
        sa.Column("membership_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("membership_id", name="pk_group_membership"),
        _to("group_membership", "membership_id", "membership.id", "CASCADE"),
    )


def _issuers() -> None:
    op.create_table(
        "jwt_issuer",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", ORDERED_TEXT, nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jwt_issuer"),
        sa.UniqueConstraint("url", name="uq_jwt_issuer_url"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "external_identity",
        sa.Column("service_account_id", sa.Integer(), nullable=False),
        sa.Column("issuer_id", sa.Integer(), nullable=False),
        sa.Column("subject", ORDERED_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("service_account_id", name="pk_external_identity"),
        sa.UniqueConstraint("issuer_id", "subject", name="uq_external_identity_issuer_id"),
        _to("external_identity", "service_account_id", "service_account.id", "CASCADE"),
        _to("external_identity", "issuer_id", "jwt_issuer.id"),
    )


def _to(table: str, column: str, target: str, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}", ondelete=ondelete)
