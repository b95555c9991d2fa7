"""How much of their lines wandb's clients have sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0028"
down_revision = "0026"
branch_labels = None
depends_on = None

_LOSSES = (
    (
        rows_of("wandb_client"),
        "{} of wandb's clients have sent lines, and would send them again: delete their runs",
    ),
)


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "wandb_client",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("client", ordered, nullable=False),
        sa.Column("host", ordered, nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("history_lines", sa.BigInteger(), nullable=False),
        sa.Column("event_lines", sa.BigInteger(), nullable=False),
        sa.Column("console_lines", sa.BigInteger(), nullable=False),
        sa.Column("row_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "client", name="pk_wandb_client"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_wandb_client_run_id", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: a client would send lines again that are stored.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("wandb_client")
