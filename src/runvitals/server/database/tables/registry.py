"""The tables of registered models, of models that trainings log, and of the files of both and of runs."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text

# `entity_id`: the team or user whose registry it is in; null on a server without accounts. `tags`, `aliases`:
# JSON objects. `last_version`: of all versions, those that were deleted too.
registered_model = Table(
    "registered_model",
    metadata,
    id_column(),
    Column("entity_id", Integer, ForeignKey("entity.id", ondelete="CASCADE")),
    Column("name", ordered_text(), nullable=False),
    Column("description", Text),
    Column("tags", Text, nullable=False),
    Column("aliases", Text, nullable=False),
    Column("last_version", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Index("uq_registered_model_name_entity_id", "name", text("coalesce(entity_id, 0)"), unique=True),
    Index(None, "entity_id"),
    sqlite_autoincrement=True,
)

# `source`: as the client sent it. `location`: where its files are. `run_uid`: the run may be gone.
model_version = Table(
    "model_version",
    metadata,
    Column("model_id", Integer, ForeignKey("registered_model.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("description", Text),
    Column("stage", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("run_uid", Text),
    Column("run_link", Text),
    Column("logged_model", Text),
    Column("tags", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

# `uid`: what clients know it by. `tags`, `params`: JSON objects.
logged_model = Table(
    "logged_model",
    metadata,
    id_column(),
    Column("uid", ordered_text(), nullable=False),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text),
    Column("status", Text, nullable=False),
    Column("run_uid", Text),
    Column("params", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    UniqueConstraint("uid"),
    Index(None, "project_id"),
    sqlite_autoincrement=True,
)

# The newest value of a metric that a run measured of a logged model, with or without a dataset ('' stands for
# none). `timestamp`, `step`: as the client
# sent them. `value`: null for NaN.
logged_model_metric = Table(
    "logged_model_metric",
    metadata,
    Column(
        "model_id",
        Integer,
        ForeignKey(
            "logged_model.id", name="fk_logged_model_metric_model_id_logged_model", ondelete="CASCADE"
        ),
        primary_key=True,
    ),
    Column("run_uid", ordered_text(), primary_key=True),
    Column("key", ordered_text(), primary_key=True),
    Column("dataset_name", ordered_text(), primary_key=True),
    Column("dataset_digest", ordered_text(), primary_key=True),
    Column("value", Double),
    Column("timestamp", BigInteger, nullable=False),
    Column("step", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# What a run used and made, as MLflow's clients log it: JSON lists.
run_lineage = Table(
    "run_lineage",
    metadata,
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("datasets", Text, nullable=False),
    Column("models", Text, nullable=False),
    Column("outputs", Text, nullable=False),
)

# A file that an MLflow client put under a path of a project. Its content is in the file store. `run_id`: null
# for the files of logged models.
mlflow_file = Table(
    "mlflow_file",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column("path", ordered_text(), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), index=True),
    Column("file_id", Integer, ForeignKey("stored_file.id"), nullable=False, index=True),
    Column("changed_ms", BigInteger, nullable=False),
)
