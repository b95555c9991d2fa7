"""Each finding has the device-hours that it alone accounts for: reports of lost hours add them up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

_ORDERED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the hours. What is kept has none, so it is removed, and the runs are judged anew."""
    _recreate_findings(sa.Column("lost_hours", sa.Double(), nullable=False))
    op.create_index("ix_judgement_judged_ms", "judgement", ["judged_ms"])


def downgrade() -> None:
    """Remove the hours. Nothing is lost: the runs are judged anew."""
    op.drop_index("ix_judgement_judged_ms", "judgement")
    _recreate_findings()


def _recreate_findings(*more: sa.Column[float]) -> None:
    op.drop_table("finding")
    op.execute("DELETE FROM judgement")
    op.create_table(
        "finding",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("rule", _ORDERED, nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("to_ms", sa.BigInteger()),
        sa.Column("opened_ms", sa.BigInteger(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("device_hours", sa.Double(), nullable=False),
        *more,
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("places", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_finding"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_finding_run_id", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_finding_rule_run_id", "finding", ["rule", "run_id"])
