"""Findings are kept with the run: what the rules say about each, and the findings themselves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

_ORDERED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables of findings."""
    op.create_table(
        "judgement",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rules_version", sa.Integer(), nullable=False),
        sa.Column("judged_ms", sa.BigInteger(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("up_to_ms", sa.BigInteger(), nullable=False),
        sa.Column("is_final", sa.Boolean(), nullable=False),
        sa.Column("verdict", _ORDERED, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("severity", sa.SmallInteger(), nullable=False),
        sa.Column("lost_hours", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("numbered", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_judgement"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_judgement_run_id", ondelete="CASCADE"),
    )
    op.create_index("ix_judgement_judged_ms", "judgement", ["judged_ms"])
    op.create_index("ix_judgement_verdict", "judgement", ["verdict"])
    op.create_index("ix_judgement_is_final_rules_version", "judgement", ["is_final", "rules_version"])
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
        sa.Column("lost_hours", sa.Double(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("places", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_finding"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_finding_run_id", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_finding_rule_run_id", "finding", ["rule", "run_id"])


def downgrade() -> None:
    """Remove the tables, and the fields that were written with them: upgrades judge again."""
    op.drop_table("finding")
    op.drop_table("judgement")
    theirs = "SELECT id FROM field WHERE name IN ('findings.severity', 'findings.lost_hours')"
    op.execute(f"DELETE FROM run_field WHERE field_id IN ({theirs})")
