"""Which of several servers gathers the rows of `log()` that are not in the summaries of runs yet."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    server = sa.Column("server", sa.Integer(), autoincrement=False, nullable=False)
    _replace([server], ["run_id", "server"], {"server": 0})


def downgrade() -> None:
    _replace([], ["run_id"], {})


def _replace(columns: Sequence[sa.Column[int]], key: Sequence[str], values: dict[str, int]) -> None:
    connection = op.get_bind()
    runs = connection.execute(sa.text("SELECT DISTINCT run_id FROM pending_summary")).scalars().all()
    op.drop_table("pending_summary")
    table = op.create_table(
        "pending_summary",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint(*key, name="pk_pending_summary"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_pending_summary_run_id", ondelete="CASCADE"),
    )
    op.bulk_insert(table, [{"run_id": run_id, **values} for run_id in runs])
