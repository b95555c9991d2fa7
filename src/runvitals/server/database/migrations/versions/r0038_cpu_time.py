"""CPU time of runs by host and day, and the energy of the time in which they shared the host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_COLUMNS = ("cpu_ms", "shared_cpu_ms", "shared_mj")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("usage_host_run_day", sa.Column(name, sa.BigInteger()))


def downgrade() -> None:
    # What is lost can be computed again from the samples.
    for name in reversed(_COLUMNS):
        op.drop_column("usage_host_run_day", name)
