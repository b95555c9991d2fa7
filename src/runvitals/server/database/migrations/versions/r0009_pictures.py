"""Pictures of users and teams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_LOSSES = ((rows_of("entity_picture"), "{} users and teams have a picture: empty entity_picture"),)


def upgrade() -> None:
    op.create_table(
        "picture",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column(
            "digest", sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql"), nullable=False
        ),
        sa.Column("large", sa.LargeBinary(), nullable=False),
        sa.Column("small", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_picture"),
        sa.UniqueConstraint("digest", name="uq_picture_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "entity_picture",
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("picture_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", name="pk_entity_picture"),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_entity_picture_entity_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["picture_id"], ["picture.id"], name="fk_entity_picture_picture_id"),
    )
    op.create_index("ix_entity_picture_picture_id", "entity_picture", ["picture_id"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: pictures would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("entity_picture")
    op.drop_table("picture")
