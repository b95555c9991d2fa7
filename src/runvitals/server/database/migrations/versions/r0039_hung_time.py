"""The time in which devices were busy, but their run logged no step."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("usage_device_run_day", sa.Column("hung_ms", sa.BigInteger()))


def downgrade() -> None:
    # What is lost can be computed again from the samples.
    op.drop_column("usage_device_run_day", "hung_ms")
