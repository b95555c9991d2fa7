"""The tables of signing in by a provider, and of service accounts that show another service's tokens."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _to_user(required: bool = True) -> Column[int]:
    to_user = ForeignKey("user_account.id", ondelete="CASCADE")
    return Column("user_id", Integer, to_user, nullable=not required)


# Who a user is at a provider: the only thing by which an account is found.
login = Table(
    "login",
    metadata,
    id_column(),
    _to_user(),
    Column("provider", ordered_text(), nullable=False),
    Column("issuer", ordered_text(), nullable=False),
    Column("subject", ordered_text(), nullable=False),
    Column("label", Text, nullable=False),
    Column("address_seen", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("last_used_ms", BigInteger),
    UniqueConstraint("issuer", "subject", name="uq_login_issuer"),
    Index(None, "user_id"),
    sqlite_autoincrement=True,
)

# A sign-in that is under way at a provider. `browser_digest`: of the cookie of the browser that began it.
# `sealed`: the nonce and the code verifier.
sign_in_attempt = Table(
    "sign_in_attempt",
    metadata,
    id_column(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("browser_digest", LargeBinary, nullable=False),
    Column("provider", Text, nullable=False),
    _to_user(required=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# Someone at a provider has the address of a user here, who must confirm it by the password.
login_offer = Table(
    "login_offer",
    metadata,
    id_column(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _to_user(),
    Column("provider", Text, nullable=False),
    Column("issuer", ordered_text(), nullable=False),
    Column("subject", ordered_text(), nullable=False),
    Column("label", Text, nullable=False),
    Column("address_seen", Text),
    Column("expires_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# The memberships that follow a provider's groups; all others were given by hand.
group_membership = Table(
    "group_membership",
    metadata,
    Column("membership_id", Integer, ForeignKey("membership.id", ondelete="CASCADE"), primary_key=True),
    Column("provider", Text, nullable=False),
)

# The administrators of the organisation who follow a provider's group.
group_administrator = Table(
    "group_administrator",
    metadata,
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("provider", Text, nullable=False),
)

# Whose tokens are accepted instead of keys: GitHub Actions, GitLab, Kubernetes. `pasted_keys`: a JWKS
# document, for an issuer that the server cannot reach; null: it asks the issuer.
jwt_issuer = Table(
    "jwt_issuer",
    metadata,
    id_column(),
    Column("name", Text, nullable=False),
    Column("url", ordered_text(), nullable=False, unique=True),
    Column("audience", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("pasted_keys", Text),
    sqlite_autoincrement=True,
)

# Who a service account is there.
external_identity = Table(
    "external_identity",
    metadata,
    Column(
        "service_account_id",
        Integer,
        ForeignKey("service_account.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("issuer_id", Integer, ForeignKey("jwt_issuer.id"), nullable=False),
    Column("subject", ordered_text(), nullable=False),
    UniqueConstraint("issuer_id", "subject", name="uq_external_identity_issuer_id"),
)

# What an identity provider calls a user or team that it provisions.
scim_resource = Table(
    "scim_resource",
    metadata,
    Column("entity_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), primary_key=True),
    Column("user_name", Text),
    Column("user_name_key", ordered_text(), unique=True),
    Column("external_id", Text),
)
