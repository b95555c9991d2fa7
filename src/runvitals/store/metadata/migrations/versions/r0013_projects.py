"""What projects show about themselves, their trash, and the projects that users marked with a star."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_NEW_COLUMNS = (
    "description TEXT NOT NULL DEFAULT ''",
    "overview TEXT NOT NULL DEFAULT ''",
    "deleted_ms BIGINT",
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
