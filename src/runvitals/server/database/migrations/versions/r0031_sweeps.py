"""Sweeps: searches for the best parameters over many runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0031"
down_revision = "0036"
branch_labels = None
depends_on = None

_LOSSES = ((rows_of("sweep"), "there are {} sweeps: delete them"),)


def _ordered_text() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "sweep",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("name", _ordered_text(), nullable=False),
        sa.Column("display_name", sa.Text()),
        sa.Column("description", sa.Text()),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("configuration", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("service_account_id", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sweep"),
        sa.UniqueConstraint("project_id", "name", name="uq_sweep_project_id_name"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_sweep_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["author_id"], ["user_account.id"], name="fk_sweep_author_id"),
        sa.ForeignKeyConstraint(
            ["service_account_id"],
            ["service_account.id"],
            name="fk_sweep_service_account_id",
            ondelete="SET NULL",
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'running', 'paused', 'finished', 'canceled')", name="ck_sweep_state"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sweep_agent",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("heard_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sweep_agent"),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name="fk_sweep_agent_sweep_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sweep_agent_sweep_id_heard_ms", "sweep_agent", ["sweep_id", "heard_ms"])
    _create_runs()


def _create_runs() -> None:
    op.create_table(
        "sweep_run",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("run_name", _ordered_text(), nullable=False),
        sa.Column("run_id", sa.Integer()),
        sa.Column("place", sa.Integer()),
        sa.Column("agent_id", sa.Integer()),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text()),
        sa.Column("value", sa.Double()),
        sa.Column("marks", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sweep_run"),
        sa.UniqueConstraint("sweep_id", "run_name", name="uq_sweep_run_sweep_id_run_name"),
        sa.UniqueConstraint("sweep_id", "place", name="uq_sweep_run_sweep_id_place"),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name="fk_sweep_run_sweep_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_sweep_run_run_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["sweep_agent.id"], name="fk_sweep_run_agent_id", ondelete="SET NULL"
        ),
        sa.CheckConstraint("state IN ('assigned', 'begun', 'stopping', 'ended')", name="ck_sweep_run_state"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sweep_run_run_id", "sweep_run", ["run_id"])
    op.create_index("ix_sweep_run_agent_id", "sweep_run", ["agent_id"])
    op.create_index("ix_sweep_run_sweep_id_state", "sweep_run", ["sweep_id", "state"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: sweeps would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in ("sweep_run", "sweep_agent", "sweep"):
        op.drop_table(table)
