"""The tables of registries, of models that trainings log, and of the files of both and of runs."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text

# A registry is a project whose name begins with `wandb-registry-`; its portfolios are the collections. What
# is here belongs to such a project. An administrator has rights only while they are in the team.
registry_admin = Table(
    "registry_admin",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column(
        "user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True, index=True
    ),
    Column("created_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The teams with a role in a registry of the organisation: their members have it while they are members.
registry_team = Table(
    "registry_team",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column(
        "team_id", Integer, ForeignKey("team.entity_id", ondelete="CASCADE"), primary_key=True, index=True
    ),
    Column("role", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    CheckConstraint("role IN ('viewer', 'member', 'admin')", name="role"),
    sqlite_with_rowid=False,
)

protected_alias = Table(
    "protected_alias",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column("alias", ordered_text(), primary_key=True),
    Column("created_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The types of artifacts that can be linked to a registry; one without rows takes all.
registry_type = Table(
    "registry_type",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column("type", ordered_text(), primary_key=True),
    sqlite_with_rowid=False,
)

# What a registry says of a collection besides its row. `properties`: a JSON object, the tags of MLflow's
# clients that have a value.
registered_model = Table(
    "registered_model",
    metadata,
    Column(
        "collection_id",
        Integer,
        ForeignKey("artifact_collection.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("properties", Text, nullable=False),
)

# What a registry says of a linked version besides its membership. `source`: as MLflow's client sent it;
# `location`: where its files are, if the version has none. `run_uid`: the run may be gone. `properties`: as
# of collections.
model_version = Table(
    "model_version",
    metadata,
    Column(
        "membership_id",
        Integer,
        ForeignKey("artifact_membership.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("author", Text, nullable=False),
    Column("description", Text),
    Column("stage", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("run_uid", Text),
    Column("run_link", Text),
    Column("logged_model", Text, index=True),
    Column("properties", Text, nullable=False),
    Column("downloads", Integer, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

# Somebody asks for a protected alias of a version. It ends with the version.
alias_request = Table(
    "alias_request",
    metadata,
    id_column(),
    Column(
        "membership_id",
        Integer,
        ForeignKey("artifact_membership.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("alias", ordered_text(), nullable=False),
    Column("state", Text, nullable=False),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("author", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("closed_by", Text),
    Column("closed_ms", BigInteger),
    CheckConstraint("state IN ('open', 'approved', 'declined', 'withdrawn')", name="state"),
    sqlite_autoincrement=True,
)

alias_request_comment = Table(
    "alias_request_comment",
    metadata,
    id_column(),
    Column(
        "request_id",
        Integer,
        ForeignKey("alias_request.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("author", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
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

# A dataset that runs used. It stays in the project where a run used it first. `source`: the beginning of it.
dataset = Table(
    "dataset",
    metadata,
    id_column(),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("name", ordered_text(), nullable=False),
    Column("digest", ordered_text(), nullable=False),
    Column("source_type", Text, nullable=False),
    Column("source", Text, nullable=False),
    UniqueConstraint("project_id", "name", "digest"),
    sqlite_autoincrement=True,
)

# The runs that used a dataset.
dataset_use = Table(
    "dataset_use",
    metadata,
    Column("dataset_id", Integer, ForeignKey("dataset.id", ondelete="CASCADE"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True, index=True),
    sqlite_with_rowid=False,
)

# The runs that made (`made`) or used a logged model.
logged_model_run = Table(
    "logged_model_run",
    metadata,
    Column("model_id", Integer, ForeignKey("logged_model.id", ondelete="CASCADE"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("made", Boolean, primary_key=True),
    sqlite_with_rowid=False,
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
