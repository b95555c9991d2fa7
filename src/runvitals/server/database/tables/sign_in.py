"""The tables of passkeys and of failed sign-ins."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from runvitals.server.database.table_base import id_column, metadata

# `handle`: what authenticators know a user by; random, so that it says nothing. `after_password`: a passkey
# is asked for after the password, as a second factor.
passkey_owner = Table(
    "passkey_owner",
    metadata,
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("handle", LargeBinary, nullable=False, unique=True),
    Column("after_password", Boolean, nullable=False),
)

# `public_key`: in COSE. `sign_count`: of the last use; 0 for authenticators that do not count. `transports`:
# how browsers reach the authenticator, separated by commas. `backed_up`: it is synced to other devices.
passkey = Table(
    "passkey",
    metadata,
    id_column(),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("credential_id", LargeBinary, nullable=False, unique=True),
    Column("public_key", LargeBinary, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    Column("transports", Text, nullable=False),
    Column("backed_up", Boolean, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("last_used_ms", BigInteger),
    Index(None, "user_id"),
    sqlite_autoincrement=True,
)

# Challenges that a passkey has answered: each answer counts once.
used_challenge = Table(
    "used_challenge",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("expires_ms", BigInteger, nullable=False),
)

# Failed sign-ins in a row by what was typed, as a keyed digest: it may be a password in the wrong field.
login_failure = Table(
    "login_failure",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
)
