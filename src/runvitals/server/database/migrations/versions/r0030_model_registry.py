"""Registered models, models that trainings log, and what MLflow's clients store of both and of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0030"
down_revision = "0027"
branch_labels = None
depends_on = None

_LOSSES = (
    (rows_of("registered_model"), "there are {} registered models: delete them"),
    (rows_of("logged_model"), "trainings have logged {} models: delete them"),
    (rows_of("run_lineage"), "{} runs have inputs or outputs: delete those runs for good"),
    (rows_of("mlflow_file"), "MLflow's clients have stored {} files: delete them"),
)


def _times() -> tuple[sa.Column[int], sa.Column[int]]:
    return (
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
    )


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "registered_model",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("entity_id", sa.Integer()),
        sa.Column("name", ordered, nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        *_times(),
        sa.PrimaryKeyConstraint("id", name="pk_registered_model"),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_registered_model_entity_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_registered_model_name_entity_id",
        "registered_model",
        ["name", sa.text("coalesce(entity_id, 0)")],
        unique=True,
    )
    op.create_index("ix_registered_model_entity_id", "registered_model", ["entity_id"])
    op.create_table(
        "model_version",
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("run_uid", sa.Text()),
        sa.Column("run_link", sa.Text()),
        sa.Column("logged_model", sa.Text()),
        sa.Column("tags", sa.Text(), nullable=False),
        *_times(),
        sa.PrimaryKeyConstraint("model_id", "version", name="pk_model_version"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["registered_model.id"], name="fk_model_version_model_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "logged_model",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("uid", ordered, nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("run_uid", sa.Text()),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        *_times(),
        sa.PrimaryKeyConstraint("id", name="pk_logged_model"),
        sa.UniqueConstraint("uid", name="uq_logged_model_uid"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_logged_model_project_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_logged_model_project_id", "logged_model", ["project_id"])
    op.create_table(
        "run_lineage",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("datasets", sa.Text(), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("outputs", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_lineage"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_lineage_run_id", ondelete="CASCADE"),
    )
    op.create_table(
        "mlflow_file",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("path", ordered, nullable=False),
        sa.Column("run_id", sa.Integer()),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "path", name="pk_mlflow_file"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_mlflow_file_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_mlflow_file_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["file_id"], ["stored_file.id"], name="fk_mlflow_file_file_id"),
    )
    op.create_index("ix_mlflow_file_run_id", "mlflow_file", ["run_id"])
    op.create_index("ix_mlflow_file_file_id", "mlflow_file", ["file_id"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: models or files would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in ("mlflow_file", "run_lineage", "logged_model", "model_version", "registered_model"):
        op.drop_table(table)
