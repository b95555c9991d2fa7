"""Rules of projects that choose the run of what OpenTelemetry and Prometheus send."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0029"
down_revision = "0025"
branch_labels = None
depends_on = None

_LOSSES = ((rows_of("routing_rules"), "{} projects have routing rules: remove them"),)


def upgrade() -> None:
    op.create_table(
        "routing_rules",
        sa.Column("project_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_routing_rules"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_routing_rules_project_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: rules would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("routing_rules")
