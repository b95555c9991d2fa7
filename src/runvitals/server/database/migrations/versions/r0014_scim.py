"""What an identity provider calls users and groups that it provisions (SCIM)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

_LOSSES = (
    (
        rows_of("scim_resource"),
        "an identity provider calls {} users and teams by names of its own: empty scim_resource",
    ),
)


def upgrade() -> None:
    op.create_table(
        "scim_resource",
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("user_name", sa.Text()),
        sa.Column("user_name_key", ORDERED_TEXT),
        sa.Column("external_id", sa.Text()),
        sa.PrimaryKeyConstraint("entity_id", name="pk_scim_resource"),
        sa.UniqueConstraint("user_name_key", name="uq_scim_resource_user_name_key"),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_scim_resource_entity_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: names of the identity provider would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("scim_resource")
