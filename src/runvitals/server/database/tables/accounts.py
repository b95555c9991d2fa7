"""The tables of accounts.

Rows of users and teams stay after a deletion, without anything personal, so that runs and the audit log keep
pointing at something and names are never given twice. Secrets are stored as SHA-256 of 256 random bits, which
need neither a salt nor a slow hash; passwords as argon2id.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import conv

from runvitals.server.database.table_base import id_column, metadata, ordered_text, unique_where

_TEAM_OR_NONE = text("coalesce(team_id, 0)")


def _to_user(name: str = "user_id", required: bool = True) -> Column[int]:
    """A column that belongs to a user: goes with the row of the user."""
    return Column(name, Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=not required)


def _by_user(name: str) -> Column[int]:
    """A column that names a user who did something."""
    return Column(name, Integer, ForeignKey("user_account.id", ondelete="SET NULL"))


def _to_team(required: bool = True) -> Column[int]:
    return Column("team_id", Integer, ForeignKey("team.entity_id", ondelete="CASCADE"), nullable=not required)


def _to_role() -> Column[int]:
    return Column("custom_role_id", Integer, ForeignKey("custom_role.id", ondelete="SET NULL"))


# What owns projects: a team, or a user's own space; and the organisation, which owns registries only. Their
# names share one namespace and are never given twice: rows stay for ever. `deleted_ms`: in the trash;
# `purged_ms`: only the name is left.
entity = Table(
    "entity",
    metadata,
    id_column(),
    Column("kind", Text, nullable=False),
    Column("name", ordered_text(), nullable=False, unique=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("deleted_ms", BigInteger),
    Column("purged_ms", BigInteger),
    CheckConstraint("kind IN ('user', 'team', 'organisation')", name="kind"),
    sqlite_autoincrement=True,
)

# `profile`: JSON. `delete_after_ms`: when a deletion that the user asked for is carried out.
# `default_entity_id`: the team of runs that name none; null: the user's own space.
user_account = Table(
    "user_account",
    metadata,
    id_column(),
    Column("entity_id", Integer, ForeignKey("entity.id"), nullable=False, unique=True),
    Column("display_name", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("org_role", Text, nullable=False),
    Column("access", Text, nullable=False),
    Column("billing_role", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("created_via", Text, nullable=False),
    Column("last_seen_ms", BigInteger),
    Column("delete_after_ms", BigInteger),
    Column("deleted_ms", BigInteger),
    Column("default_entity_id", Integer),
    CheckConstraint("state IN ('unverified', 'active', 'suspended', 'deleted')", name="state"),
    CheckConstraint("org_role IN ('member', 'admin')", name="org_role"),
    CheckConstraint("access IN ('full', 'viewer', 'none')", name="access"),
    CheckConstraint("billing_role IN ('none', 'viewer', 'admin')", name="billing_role"),
    CheckConstraint("billing_role <> 'admin' OR org_role = 'admin'", name="billing_admin"),
    sqlite_autoincrement=True,
)

# Many users may have added an address; one has verified it.
email = Table(
    "email",
    metadata,
    id_column(),
    _to_user(),
    Column("address", Text, nullable=False),
    Column("address_key", ordered_text(), nullable=False),
    Column("verified_ms", BigInteger),
    Column("is_primary", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("last_sent_ms", BigInteger),
    Column("failing_since_ms", BigInteger),
    UniqueConstraint("user_id", "address_key"),
    unique_where("uq_email_verified", "address_key", where="verified_ms IS NOT NULL"),
    unique_where("uq_email_primary", "user_id", where="is_primary"),
    sqlite_autoincrement=True,
)

password = Table(
    "password",
    metadata,
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("hash", Text, nullable=False),
    Column("set_ms", BigInteger, nullable=False),
    Column("must_change", Boolean, nullable=False),
)

# `sealed_secret`: encrypted by the server's key file. `last_step`: the time step of the last code used, so
# that a code counts once. `confirmed_ms` null: the user has not yet typed a code.
second_factor = Table(
    "second_factor",
    metadata,
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("sealed_secret", LargeBinary, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("confirmed_ms", BigInteger),
    Column("last_step", BigInteger),
)

recovery_code = Table(
    "recovery_code",
    metadata,
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
)

session = Table(
    "session",
    metadata,
    id_column(),
    _to_user(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("idle_until_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("sudo_until_ms", BigInteger),
    Column("method", Text, nullable=False),
    Column("ip", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("revoked_ms", BigInteger),
    Index(None, "user_id"),
    sqlite_autoincrement=True,
)

# `purpose`: verify_email, reset_password, setup.
one_time_token = Table(
    "one_time_token",
    metadata,
    id_column(),
    Column("purpose", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _to_user(required=False),
    Column("email_id", Integer, ForeignKey("email.id", ondelete="CASCADE")),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("used_ms", BigInteger),
    sqlite_autoincrement=True,
)

# Sign-ins of a command line, which wait for a user in a browser: `user_id` null until one answers.
device_login = Table(
    "device_login",
    metadata,
    id_column(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("code", ordered_text(), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("ip", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    _to_user(required=False),
    Column("scope", Text, nullable=False),
    Column("denied", Boolean, nullable=False),
    sqlite_autoincrement=True,
)

# A missing row is the default.
organisation_setting = Table(
    "organisation_setting",
    metadata,
    Column("name", ordered_text(), primary_key=True),
    Column("value", Text, nullable=False),
    Column("set_ms", BigInteger, nullable=False),
)

# `join_domains`: JSON. `join_by_domain`: whether people with an address there must ask, or join at once.
team = Table(
    "team",
    metadata,
    Column("entity_id", Integer, ForeignKey("entity.id"), primary_key=True),
    Column("display_name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default="work"),
    Column("company", Text, nullable=False, server_default=""),
    Column("profile", Text, nullable=False, server_default="{}"),
    _by_user("created_by"),
    Column("default_visibility", Text, nullable=False),
    Column("join_domains", Text, nullable=False, server_default="[]"),
    Column("join_by_domain", Text, nullable=False, server_default="ask"),
    Column("recommend_by_domain", Boolean, nullable=False, server_default=text("false")),
    Column("hidden", Boolean, nullable=False),
    Column("members_invite", Boolean, nullable=False),
    Column("public_projects", Boolean, nullable=False),
    Column("public_links", Boolean, nullable=False),
    Column("code_saving", Boolean, nullable=False),
)

custom_role = Table(
    "custom_role",
    metadata,
    id_column(),
    Column("name", Text, nullable=False),
    Column("name_key", ordered_text(), nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("base", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    CheckConstraint("base IN ('viewer', 'member')", name="base"),
    sqlite_autoincrement=True,
)

custom_role_action = Table(
    "custom_role_action",
    metadata,
    Column("role_id", Integer, ForeignKey("custom_role.id", ondelete="CASCADE"), primary_key=True),
    Column("action", ordered_text(), primary_key=True),
    sqlite_with_rowid=False,
)

# `role`: with a custom role, its base, which is what is left when the custom role is deleted.
membership = Table(
    "membership",
    metadata,
    id_column(),
    _to_team(),
    _to_user(),
    Column("role", Text, nullable=False),
    _to_role(),
    _by_user("added_by"),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    UniqueConstraint("team_id", "user_id"),
    Index(None, "user_id"),
    CheckConstraint("role IN ('viewer', 'member', 'admin')", name="role"),
    CheckConstraint("custom_role_id IS NULL OR role <> 'admin'", name="custom_role"),
    sqlite_autoincrement=True,
)

# `kind`: builtin, or legacy: the tokens from before accounts. `team_id` null: of the organisation.
service_account = Table(
    "service_account",
    metadata,
    id_column(),
    Column("name", ordered_text(), nullable=False),
    Column("kind", Text, nullable=False),
    _to_team(required=False),
    Column("default_team_id", Integer, ForeignKey("team.entity_id", ondelete="SET NULL")),
    Column("reads_only", Boolean, nullable=False),
    _by_user("created_by"),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
    Column("deleted_ms", BigInteger),
    CheckConstraint("kind IN ('builtin', 'legacy')", name="kind"),
    unique_where("uq_service_account_name", _TEAM_OR_NONE, "name", where="deleted_ms IS NULL"),
    sqlite_autoincrement=True,
)

# `role` null: the member's role in the team.
project_member = Table(
    "project_member",
    metadata,
    id_column(),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    _to_user(required=False),
    Column("service_account_id", Integer, ForeignKey("service_account.id", ondelete="CASCADE")),
    Column("role", Text),
    _to_role(),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("project_id", "user_id"),
    UniqueConstraint("project_id", "service_account_id"),
    Index(None, "user_id"),
    CheckConstraint("(user_id IS NULL) <> (service_account_id IS NULL)", name="one_member"),
    sqlite_autoincrement=True,
)

# `public_id`: the part of the key that is shown, and by which its row is found.
api_key = Table(
    "api_key",
    metadata,
    id_column(),
    Column("public_id", ordered_text(), nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False),
    Column("name", Text, nullable=False),
    _to_user(required=False),
    Column("service_account_id", Integer, ForeignKey("service_account.id", ondelete="CASCADE")),
    Column("scope", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("last_used_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    Column("rotated_from_id", Integer, ForeignKey("api_key.id", ondelete="SET NULL")),
    Index(None, "user_id"),
    Index(None, "service_account_id"),
    CheckConstraint("(user_id IS NULL) <> (service_account_id IS NULL)", name="one_owner"),
    CheckConstraint("scope IN ('ingest', 'read', 'write', 'full')", name="scope"),
    sqlite_autoincrement=True,
)

# The only entities that a key works in; no rows: all.
api_key_entity = Table(
    "api_key_entity",
    metadata,
    Column("key_id", Integer, ForeignKey("api_key.id", ondelete="CASCADE"), primary_key=True),
    Column("entity_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), primary_key=True),
    sqlite_with_rowid=False,
)

# `team_id` null: to the organisation only. `user_id`: a user who was invited by name, without an address.
# `address_key` and `user_id` null: a link that anyone can use.
invitation = Table(
    "invitation",
    metadata,
    id_column(),
    _to_team(required=False),
    Column("address", Text),
    Column("address_key", ordered_text()),
    _to_user(required=False),
    Column("role", Text, nullable=False),
    _to_role(),
    Column("org_role", Text, nullable=False),
    _by_user("invited_by"),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("sent_ms", BigInteger, nullable=False),
    Column("sends", Integer, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended_ms", BigInteger),
    unique_where("uq_invitation_pending", _TEAM_OR_NONE, "address_key", where="state = 'pending'"),
    unique_where("uq_invitation_pending_user", _TEAM_OR_NONE, "user_id", where="state = 'pending'"),
    Index(None, "user_id"),
    CheckConstraint("state IN ('pending', 'accepted', 'declined', 'revoked', 'expired')", name="state"),
    sqlite_autoincrement=True,
)

# Names are copied and there are no foreign keys: a row stays as it was written.
audit_event = Table(
    "audit_event",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("action", ordered_text(), nullable=False),
    Column("outcome", Text, nullable=False),
    Column("actor_kind", Text, nullable=False),
    Column("actor_id", Integer),
    Column("actor_name", ordered_text(), nullable=False),
    Column("via", Text, nullable=False),
    Column("key_public_id", Text),
    Column("ip", Text),
    Column("agent", Text),
    Column("request_id", Text),
    Column("entity_id", Integer),
    Column("entity", ordered_text()),
    Column("project", Text),
    Column("run", Text),
    Column("target", ordered_text()),
    Column("before", Text),
    Column("after", Text),
    Index(None, "time_ms"),
    Index(None, "entity_id", "time_ms"),
    Index(None, "actor_kind", "actor_id", "time_ms"),
    sqlite_autoincrement=True,
)

# One row: raised by every change of rights, so that all processes forget what they cached.
access_generation = Table(
    "access_generation",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)


# `message`: what the user wrote to the team's administrators. `ended_by`: who approved or rejected it.
team_join_request = Table(
    "team_join_request",
    metadata,
    id_column(),
    Column("team_id", Integer, ForeignKey("team.entity_id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("message", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended_ms", BigInteger),
    Column("ended_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    unique_where("uq_team_join_request_pending", "team_id", "user_id", where="state = 'pending'"),
    Index(None, "user_id"),
    CheckConstraint("state IN ('pending', 'approved', 'rejected', 'withdrawn')", name=conv("state")),
    sqlite_autoincrement=True,
)
