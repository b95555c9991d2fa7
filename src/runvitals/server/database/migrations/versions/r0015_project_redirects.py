"""Where projects were before they were renamed or given to another team."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

_LOSSES = (
    (
        rows_of("project_redirect"),
        "the addresses of {} projects from before a rename or transfer would stop working: empty "
        "project_redirect",
    ),
)


def upgrade() -> None:
    op.create_table(
        "project_redirect",
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "name", name="pk_project_redirect"),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_project_redirect_entity_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_redirect_project_id", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_project_redirect_project_id", "project_redirect", ["project_id"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: addresses that still lead to projects would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("project_redirect")
