"""The metrics of logged models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "logged_model_metric",
        sa.Column("model_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_uid", ordered, nullable=False),
        sa.Column("key", ordered, nullable=False),
        sa.Column("dataset_name", ordered, nullable=False),
        sa.Column("dataset_digest", ordered, nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["logged_model.id"],
            name="fk_logged_model_metric_model_id_logged_model",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "model_id", "run_uid", "key", "dataset_name", "dataset_digest", name="pk_logged_model_metric"
        ),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    losses = [(rows_of("logged_model_metric"), "{} metrics of logged models would be lost")]
    check_nothing_is_lost(op.get_bind(), "0041", losses)
    op.drop_table("logged_model_metric")
