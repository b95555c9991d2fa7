"""Datasets and logged models are in the lineage; and the day is kept on which something was last read."""

from __future__ import annotations

import json
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

_ORDERED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_READ: Final = ("run", "artifact_version")
_MAX_SOURCE: Final = 500


def upgrade() -> None:
    """Create the tables, and fill them from what clients of MLflow logged."""
    op.create_table(
        "dataset",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        *(sa.Column(name, _ORDERED, nullable=False) for name in ("name", "digest")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("source_type", "source")),
        _cascade("dataset", "project_id", "project"),
        sa.PrimaryKeyConstraint("id", name="pk_dataset"),
        sa.UniqueConstraint("project_id", "name", "digest", name="uq_dataset_project_id_name_digest"),
        sqlite_autoincrement=True,
    )
    _create_link("dataset_use", "dataset_id", "dataset")
    _create_link(
        "logged_model_run", "model_id", "logged_model", sa.Column("made", sa.Boolean(), nullable=False)
    )
    op.create_index("ix_model_version_logged_model", "model_version", ["logged_model"])
    for table in _READ:
        op.add_column(table, sa.Column("read_day", sa.Integer()))
    _fill(op.get_bind())


def downgrade() -> None:
    """Remove them: what clients logged is kept elsewhere, and the days are lost."""
    for table in _READ:
        op.drop_column(table, "read_day")
    op.drop_index("ix_model_version_logged_model", "model_version")
    for table in ("logged_model_run", "dataset_use", "dataset"):
        op.drop_table(table)


def _create_link(table: str, column: str, to: str, *more: sa.Column[Any]) -> None:
    op.create_table(
        table,
        sa.Column(column, sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        *more,
        _cascade(table, column, to),
        _cascade(table, "run_id", "run"),
        sa.PrimaryKeyConstraint(
            column, "run_id", *(extra_column.name for extra_column in more), name=f"pk_{table}"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(f"ix_{table}_run_id", table, ["run_id"])


def _cascade(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _fill(connection: sa.Connection) -> None:
    """Link what each run used and made."""
    connection.execute(
        sa.text(
            """INSERT INTO logged_model_run (model_id, run_id, made)
            SELECT logged_model.id, run.id, true FROM logged_model
            JOIN project ON project.id = logged_model.project_id
            JOIN run ON run.uid = logged_model.run_uid
                AND coalesce(run.entity_id, 0) = coalesce(project.entity_id, 0)"""
        )
    )
    models: dict[str, int] = dict(connection.execute(sa.text("SELECT uid, id FROM logged_model")).all())
    rows = connection.execute(
        sa.text(
            "SELECT run_lineage.*, run.project_id FROM run_lineage JOIN run ON run.id = run_lineage.run_id"
        )
    )
    for row in rows.mappings().all():
        for used in json.loads(row["datasets"]):
            _link_dataset(connection, row["run_id"], row["project_id"], used["dataset"])
        for kind, is_output in (("models", False), ("outputs", True)):
            for uid in {entry["model_id"] for entry in json.loads(row[kind])} & models.keys():
                _add(
                    connection, "logged_model_run", model_id=models[uid], run_id=row["run_id"], made=is_output
                )


def _link_dataset(connection: sa.Connection, run_id: int, project_id: int, fields: dict[str, str]) -> None:
    identity = {"project_id": project_id, "name": fields["name"], "digest": fields["digest"]}
    source = {"source_type": fields["source_type"], "source": fields["source"][:_MAX_SOURCE]}
    _add(connection, "dataset", **identity, **source)
    query = "SELECT id FROM dataset WHERE project_id = :project_id AND name = :name AND digest = :digest"
    number = connection.execute(sa.text(query), identity).scalar_one()
    _add(connection, "dataset_use", dataset_id=number, run_id=run_id)


def _add(connection: sa.Connection, table: str, **values: object) -> None:
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    statement = f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"
    connection.execute(sa.text(statement), values)
