"""Users, teams, keys, sessions, invitations, settings and the audit log.

Projects and runs get the columns of their owners, empty: a store without accounts stays as it was, until the
operator names the team that gets what is there.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

# As SQL, the same in both databases: Alembic cannot add a column with a foreign key to a SQLite table.
_NEW_COLUMNS = (
    "project ADD COLUMN entity_id INTEGER CONSTRAINT fk_project_entity_id REFERENCES entity (id)",
    "project ADD COLUMN owner_id INTEGER CONSTRAINT fk_project_owner_id REFERENCES user_account (id)",
    "project ADD COLUMN visibility TEXT",
    "run ADD COLUMN author_id INTEGER CONSTRAINT fk_run_author_id REFERENCES user_account (id)",
    "run ADD COLUMN service_account_id INTEGER CONSTRAINT fk_run_service_account_id "
    "REFERENCES service_account (id) ON DELETE SET NULL",
)


def upgrade() -> None:
    _people()
    _teams()
    _keys()
    for column in _NEW_COLUMNS:
        op.execute(f"ALTER TABLE {column}")


def _people() -> None:
    op.create_table(
        "access_generation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_access_generation"),
    )
    op.create_table(
        "audit_event",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("action", ORDERED_TEXT, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("actor_kind", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Integer()),
        sa.Column("actor_name", ORDERED_TEXT, nullable=False),
        sa.Column("via", sa.Text(), nullable=False),
        sa.Column("key_public_id", sa.Text()),
        sa.Column("ip", sa.Text()),
        sa.Column("agent", sa.Text()),
        sa.Column("entity_id", sa.Integer()),
        sa.Column("entity", ORDERED_TEXT),
        sa.Column("target", ORDERED_TEXT),
        sa.Column("before", sa.Text()),
        sa.Column("after", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_audit_event"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_audit_event_actor_kind_actor_id_time_ms", "audit_event", ["actor_kind", "actor_id", "time_ms"]
    )
    op.create_index("ix_audit_event_entity_id_time_ms", "audit_event", ["entity_id", "time_ms"])
    op.create_index("ix_audit_event_time_ms", "audit_event", ["time_ms"])
    op.create_table(
        "entity",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.Column("purged_ms", sa.BigInteger()),
        sa.CheckConstraint("kind IN ('user', 'team')", name="ck_entity_kind"),
        sa.PrimaryKeyConstraint("id", name="pk_entity"),
        sa.UniqueConstraint("name", name="uq_entity_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "organisation_setting",
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("set_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_organisation_setting"),
    )
    op.create_table(
        "user_account",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("org_role", sa.Text(), nullable=False),
        sa.Column("access", sa.Text(), nullable=False),
        sa.Column("billing_role", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_via", sa.Text(), nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger()),
        sa.Column("delete_after_ms", sa.BigInteger()),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.CheckConstraint("access IN ('full', 'viewer', 'none')", name="ck_user_account_access"),
        sa.CheckConstraint(
            "billing_role <> 'admin' OR org_role = 'admin'", name="ck_user_account_billing_admin"
        ),
        sa.CheckConstraint(
            "billing_role IN ('none', 'viewer', 'admin')", name="ck_user_account_billing_role"
        ),
        sa.CheckConstraint("org_role IN ('member', 'admin')", name="ck_user_account_org_role"),
        sa.CheckConstraint(
            "state IN ('unverified', 'active', 'suspended', 'deleted')", name="ck_user_account_state"
        ),
        sa.ForeignKeyConstraint(["entity_id"], ["entity.id"], name="fk_user_account_entity_id"),
        sa.PrimaryKeyConstraint("id", name="pk_user_account"),
        sa.UniqueConstraint("entity_id", name="uq_user_account_entity_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "email",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("address_key", ORDERED_TEXT, nullable=False),
        sa.Column("verified_ms", sa.BigInteger()),
        sa.Column("is_primary", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_sent_ms", sa.BigInteger()),
        sa.Column("failing_since_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_email_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_email"),
        sa.UniqueConstraint("user_id", "address_key", name="uq_email_user_id_address_key"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_email_primary",
        "email",
        ["user_id"],
        unique=True,
        sqlite_where=sa.text("is_primary"),
        postgresql_where=sa.text("is_primary"),
    )
    op.create_index(
        "uq_email_verified",
        "email",
        ["address_key"],
        unique=True,
        sqlite_where=sa.text("verified_ms IS NOT NULL"),
        postgresql_where=sa.text("verified_ms IS NOT NULL"),
    )
    op.create_table(
        "password",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("set_ms", sa.BigInteger(), nullable=False),
        sa.Column("must_change", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_password_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name="pk_password"),
    )
    op.create_table(
        "recovery_code",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_recovery_code_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "digest", name="pk_recovery_code"),
    )
    op.create_table(
        "second_factor",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_ms", sa.BigInteger()),
        sa.Column("last_step", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_second_factor_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name="pk_second_factor"),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("idle_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("sudo_until_ms", sa.BigInteger()),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("ip", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("revoked_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_session_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_session"),
        sa.UniqueConstraint("digest", name="uq_session_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_session_user_id", "session", ["user_id"])
    op.create_table(
        "one_time_token",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.Integer()),
        sa.Column("email_id", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("used_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["email_id"], ["email.id"], name="fk_one_time_token_email_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_one_time_token_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_one_time_token"),
        sa.UniqueConstraint("digest", name="uq_one_time_token_digest"),
        sqlite_autoincrement=True,
    )


def _teams() -> None:
    op.create_table(
        "custom_role",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", ORDERED_TEXT, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("base IN ('viewer', 'member')", name="ck_custom_role_base"),
        sa.PrimaryKeyConstraint("id", name="pk_custom_role"),
        sa.UniqueConstraint("name_key", name="uq_custom_role_name_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "custom_role_action",
        sa.Column("role_id", sa.Integer(), nullable=False),
        sa.Column("action", ORDERED_TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["role_id"], ["custom_role.id"], name="fk_custom_role_action_role_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("role_id", "action", name="pk_custom_role_action"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "team",
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("default_visibility", sa.Text(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("members_invite", sa.Boolean(), nullable=False),
        sa.Column("public_projects", sa.Boolean(), nullable=False),
        sa.Column("public_links", sa.Boolean(), nullable=False),
        sa.Column("code_saving", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["user_account.id"], name="fk_team_created_by", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["entity_id"], ["entity.id"], name="fk_team_entity_id"),
        sa.PrimaryKeyConstraint("entity_id", name="pk_team"),
    )
    op.create_table(
        "invitation",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer()),
        sa.Column("address", sa.Text()),
        sa.Column("address_key", ORDERED_TEXT),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("custom_role_id", sa.Integer()),
        sa.Column("org_role", sa.Text(), nullable=False),
        sa.Column("invited_by", sa.Integer()),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("sent_ms", sa.BigInteger(), nullable=False),
        sa.Column("sends", sa.Integer(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.CheckConstraint(
            "state IN ('pending', 'accepted', 'declined', 'revoked', 'expired')", name="ck_invitation_state"
        ),
        sa.ForeignKeyConstraint(
            ["custom_role_id"], ["custom_role.id"], name="fk_invitation_custom_role_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["invited_by"], ["user_account.id"], name="fk_invitation_invited_by", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["team.entity_id"], name="fk_invitation_team_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_invitation"),
        sa.UniqueConstraint("digest", name="uq_invitation_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "membership",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("custom_role_id", sa.Integer()),
        sa.Column("added_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.CheckConstraint("custom_role_id IS NULL OR role <> 'admin'", name="ck_membership_custom_role"),
        sa.CheckConstraint("role IN ('viewer', 'member', 'admin')", name="ck_membership_role"),
        sa.ForeignKeyConstraint(
            ["added_by"], ["user_account.id"], name="fk_membership_added_by", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["custom_role_id"], ["custom_role.id"], name="fk_membership_custom_role_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["team.entity_id"], name="fk_membership_team_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_membership_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_membership"),
        sa.UniqueConstraint("team_id", "user_id", name="uq_membership_team_id_user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_membership_user_id", "membership", ["user_id"])
    op.create_index(
        "uq_invitation_pending",
        "invitation",
        [sa.text("coalesce(team_id, 0)"), "address_key"],
        unique=True,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )


def _keys() -> None:
    op.create_table(
        "service_account",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Integer()),
        sa.Column("default_team_id", sa.Integer()),
        sa.Column("reads_only", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.CheckConstraint("kind IN ('builtin', 'legacy')", name="ck_service_account_kind"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["user_account.id"], name="fk_service_account_created_by", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["default_team_id"],
            ["team.entity_id"],
            name="fk_service_account_default_team_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["team.entity_id"], name="fk_service_account_team_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_service_account"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("public_id", ORDERED_TEXT, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Integer()),
        sa.Column("service_account_id", sa.Integer()),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.Column("last_used_ms", sa.BigInteger()),
        sa.Column("revoked_ms", sa.BigInteger()),
        sa.Column("rotated_from_id", sa.Integer()),
        sa.CheckConstraint("scope IN ('ingest', 'read', 'write', 'full')", name="ck_api_key_scope"),
        sa.CheckConstraint("(user_id IS NULL) <> (service_account_id IS NULL)", name="ck_api_key_one_owner"),
        sa.ForeignKeyConstraint(
            ["rotated_from_id"], ["api_key.id"], name="fk_api_key_rotated_from_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["service_account_id"],
            ["service_account.id"],
            name="fk_api_key_service_account_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_api_key_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("public_id", name="uq_api_key_public_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_key_service_account_id", "api_key", ["service_account_id"])
    op.create_index("ix_api_key_user_id", "api_key", ["user_id"])
    op.create_table(
        "project_member",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer()),
        sa.Column("service_account_id", sa.Integer()),
        sa.Column("role", sa.Text()),
        sa.Column("custom_role_id", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (service_account_id IS NULL)", name="ck_project_member_one_member"
        ),
        sa.ForeignKeyConstraint(
            ["custom_role_id"],
            ["custom_role.id"],
            name="fk_project_member_custom_role_id",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_member_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["service_account_id"],
            ["service_account.id"],
            name="fk_project_member_service_account_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_project_member_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_project_member"),
        sa.UniqueConstraint(
            "project_id", "service_account_id", name="uq_project_member_project_id_service_account_id"
        ),
        sa.UniqueConstraint("project_id", "user_id", name="uq_project_member_project_id_user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_member_user_id", "project_member", ["user_id"])
    op.create_table(
        "api_key_entity",
        sa.Column("key_id", sa.Integer(), nullable=False),
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_api_key_entity_entity_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_key.id"], name="fk_api_key_entity_key_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key_id", "entity_id", name="pk_api_key_entity"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "uq_service_account_name",
        "service_account",
        [sa.text("coalesce(team_id, 0)"), "name"],
        unique=True,
        sqlite_where=sa.text("deleted_ms IS NULL"),
        postgresql_where=sa.text("deleted_ms IS NULL"),
    )
