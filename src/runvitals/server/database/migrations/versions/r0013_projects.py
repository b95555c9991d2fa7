"""What projects show about themselves, their trash, and the projects that users marked with a star."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_NEW_COLUMNS = (
    "description TEXT NOT NULL DEFAULT ''",
    "overview TEXT NOT NULL DEFAULT ''",
    "deleted_ms BIGINT",
)

_LOSSES = (
    (
        rows_of("project", "deleted_ms IS NOT NULL"),
        "{} projects in the trash would be back: restore them, or delete them for good",
    ),
    (
        rows_of("project", "description <> '' OR overview <> ''"),
        "{} projects have a description or an overview: set both to ''",
    ),
    (rows_of("project_star"), "users have marked projects with {} stars: empty project_star"),
)


def upgrade() -> None:
    for column in _NEW_COLUMNS:
        op.execute(f"ALTER TABLE project ADD COLUMN {column}")
    op.create_table(
        "project_star",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "user_id", name="pk_project_star"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_star_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_project_star_user_id", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: the trash, the texts or the stars of projects would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("project_star")
    for name in ("description", "overview", "deleted_ms"):
        op.execute(f"ALTER TABLE project DROP COLUMN {name}")
