"""Collections of artifacts have a time to live for their versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None
earlier_servers_go_on = True


def upgrade() -> None:
    """Add the column."""
    op.add_column("artifact_collection", sa.Column("ttl_s", sa.BigInteger))


def downgrade() -> None:
    """Remove the column, unless a collection has a time to live."""
    losses = [
        (rows_of("artifact_collection", "ttl_s IS NOT NULL"), "{} artifacts have a time to live: remove them")
    ]
    check_nothing_is_lost(op.get_bind(), revision, losses)
    op.drop_column("artifact_collection", "ttl_s")
