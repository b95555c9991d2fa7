"""What teams show about themselves, invitations of users by name, and whose project and run was changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# As SQL, the same in both databases: Alembic cannot add a column with a foreign key to a SQLite table.
_NEW_COLUMNS = (
    "team ADD COLUMN kind TEXT NOT NULL DEFAULT 'work'",
    "team ADD COLUMN company TEXT NOT NULL DEFAULT ''",
    "team ADD COLUMN profile TEXT NOT NULL DEFAULT '{}'",
    "audit_event ADD COLUMN project TEXT",
    "audit_event ADD COLUMN run TEXT",
    "invitation ADD COLUMN user_id INTEGER CONSTRAINT fk_invitation_user_id "
    "REFERENCES user_account (id) ON DELETE CASCADE",
)

_LOSSES = (
    (
        rows_of("team", "kind <> 'work' OR company <> '' OR profile <> '{}'"),
        "{} teams have a type, a company or a profile: set team.kind to 'work', company to '' and profile to "
        "'{{}}'",
    ),
    (
        rows_of("audit_event", "project IS NOT NULL OR run IS NOT NULL"),
        "{} events of the audit log name a project or run: export the log, then set both columns to null",
    ),
    (
        rows_of("invitation", "user_id IS NOT NULL"),
        "{} invitations are to users, not to addresses: delete these rows of invitation",
    ),
)


def upgrade() -> None:
    for column in _NEW_COLUMNS:
        op.execute(f"ALTER TABLE {column}")
    op.create_index("ix_invitation_user_id", "invitation", ["user_id"])
    op.create_index(
        "uq_invitation_pending_user",
        "invitation",
        [sa.text("coalesce(team_id, 0)"), "user_id"],
        unique=True,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: what teams show, the projects and runs of the audit log, or invitations of users would
            be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_index("uq_invitation_pending_user", "invitation")
    op.drop_index("ix_invitation_user_id", "invitation")
    for column in reversed(_NEW_COLUMNS):
        table, _, _, name, *_ = column.split()
        op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
