"""Texts, lists and objects that clients log are found by step."""

from __future__ import annotations

from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
earlier_servers_go_on = True


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_media_run_id_kind_step", "media", ["run_id", "kind", "step"])


def downgrade() -> None:
    """Remove the index."""
    op.drop_index("ix_media_run_id_kind_step", "media")
