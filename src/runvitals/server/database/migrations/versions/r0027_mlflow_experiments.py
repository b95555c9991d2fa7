"""What MLflow's clients set of experiments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0027"
down_revision = "0028"
branch_labels = None
depends_on = None

_LOSSES = (
    (
        rows_of("mlflow_experiment", "tags <> '{}' OR deleted_ms IS NOT NULL"),
        "{} experiments of MLflow have tags or are in the trash: remove the tags, restore the experiments",
    ),
)


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "mlflow_experiment",
        sa.Column("project_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", ordered),
        sa.Column("artifact_location", sa.Text()),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_mlflow_experiment"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_mlflow_experiment_project_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_mlflow_experiment_name", "mlflow_experiment", ["name"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: tags or deleted experiments would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("mlflow_experiment")
