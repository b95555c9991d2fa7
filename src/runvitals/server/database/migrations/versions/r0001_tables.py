"""The tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
EVENT_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "device",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("identity", ORDERED_TEXT, nullable=False),
        sa.Column("uuid", ORDERED_TEXT),
        sa.Column("pci_address", ORDERED_TEXT),
        sa.Column("host", ORDERED_TEXT, nullable=False),
        sa.Column("vendor", ORDERED_TEXT),
        sa.Column("model", ORDERED_TEXT),
        sa.Column("memory_bytes", sa.BigInteger()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("first_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_device"),
        sa.UniqueConstraint("identity", name="uq_device_identity"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "field",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_field"),
        sa.UniqueConstraint("name", name="uq_field_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "metric",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("key", ORDERED_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_metric"),
        sa.UniqueConstraint("key", name="uq_metric_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "project",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_project"),
        sa.UniqueConstraint("name", name="uq_project_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "schema",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("metric_ids", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_schema"),
        sa.UniqueConstraint("digest", name="uq_schema_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_used_ms", sa.BigInteger()),
        sa.Column("revoked_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_token"),
        sa.UniqueConstraint("digest", name="uq_token_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("uid", ORDERED_TEXT, nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("group_name", ORDERED_TEXT, nullable=False),
        sa.Column("job_type", ORDERED_TEXT, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("alive_until_ms", sa.BigInteger()),
        sa.Column("settled_state", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("signal", sa.BigInteger()),
        sa.Column("out_of_memory", sa.Boolean()),
        sa.Column("stop_requested_ms", sa.BigInteger()),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_run_project_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.UniqueConstraint("uid", name="uq_run_uid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_run_name", "run", ["name", "id", "deleted_ms"])
    op.create_index("ix_run_project", "run", ["project_id", "started_ms", "id", "deleted_ms"])
    op.create_index("ix_run_started", "run", ["started_ms", "id", "deleted_ms"])
    op.create_index("ix_run_state", "run", ["alive_until_ms", "settled_state", "project_id", "deleted_ms"])
    op.create_table(
        "process",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("host", ORDERED_TEXT, nullable=False),
        sa.Column("pid", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("rank", sa.BigInteger()),
        sa.Column("local_rank", sa.BigInteger()),
        sa.Column("world_size", sa.BigInteger()),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("signal", sa.BigInteger()),
        sa.Column("out_of_memory", sa.Boolean()),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_process_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "host", "pid", name="pk_process"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_device",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("host", ORDERED_TEXT, nullable=False),
        sa.Column("device_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger()),
        sa.Column("used", sa.Boolean()),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name="fk_run_device_device_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_device_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "host", "device_id", name="pk_run_device"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_run_device_device_id_run_id", "run_device", ["device_id", "run_id"])
    op.create_table(
        "run_field",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("field_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("number", sa.Double(), nullable=False),
        sa.Column("text", ORDERED_TEXT, nullable=False),
        sa.ForeignKeyConstraint(["field_id"], ["field.id"], name="fk_run_field_field_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_field_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "field_id", name="pk_run_field"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_run_field_field_id_kind_number_text_run_id",
        "run_field",
        ["field_id", "kind", "number", "text", "run_id"],
    )
    op.create_table(
        "run_tag",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("tag", ORDERED_TEXT, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_tag_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "tag", name="pk_run_tag"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_run_tag_tag_run_id", "run_tag", ["tag", "run_id"])
    op.create_table(
        "run_text",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_text_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_text"),
    )
    op.create_table(
        "section",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("host", ORDERED_TEXT, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("set_ms", sa.BigInteger(), nullable=False),
        sa.Column("older", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_section_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name", "host", name="pk_section"),
    )
    op.create_table(
        "writer",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("lane_id", sa.Integer(), nullable=False),
        sa.Column("role", ORDERED_TEXT, nullable=False),
        sa.Column("host", ORDERED_TEXT, nullable=False),
        sa.Column("pid", sa.BigInteger()),
        sa.Column("rank", sa.BigInteger()),
        sa.Column("interval_s", sa.Double()),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("heard_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_state", sa.Text()),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("signal", sa.BigInteger()),
        sa.Column("out_of_memory", sa.Boolean()),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_writer_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_writer"),
        sa.UniqueConstraint("run_id", "name", name="uq_writer_run_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_writer_lane_id", "writer", ["lane_id"])
    op.create_table(
        "event",
        sa.Column("id", EVENT_ID, sa.Identity(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("writer_id", sa.Integer()),
        sa.Column("seq", sa.BigInteger()),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("level", ORDERED_TEXT, nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_event_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["writer_id"], ["writer.id"], name="fk_event_writer_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sa.UniqueConstraint("writer_id", "seq", name="uq_event_writer_id_seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_run_id_time_ms_id", "event", ["run_id", "time_ms", "id"])
    op.create_table(
        "writer_schema",
        sa.Column("writer_id", sa.Integer(), nullable=False),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["schema_id"], ["schema.id"], name="fk_writer_schema_schema_id"),
        sa.ForeignKeyConstraint(
            ["writer_id"], ["writer.id"], name="fk_writer_schema_writer_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("writer_id", "schema_id", name="pk_writer_schema"),
        sqlite_with_rowid=False,
    )
