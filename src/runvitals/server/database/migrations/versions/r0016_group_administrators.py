"""Administrators of the organisation whom a provider's group made so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_LOSSES = (
    (
        rows_of("group_administrator"),
        "{} users administer the organisation because of a provider's group: empty group_administrator",
    ),
)


def upgrade() -> None:
    op.create_table(
        "group_administrator",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_group_administrator"),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_group_administrator_user_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: it would be lost which administrators follow a group.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("group_administrator")
