"""What runs used by day, prices, plans, usage alerts and statements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0036"
down_revision = "0034"
branch_labels = None
depends_on = None

_LOSSES = (
    (rows_of("statement", "number IS NOT NULL"), "{} statements were issued: keep a copy and delete them"),
    (rows_of("rate"), "{} prices were set: delete them"),
    (rows_of("cost_centre"), "{} cost centres exist: delete them"),
    (rows_of("plan"), "{} plans exist: delete them"),
    (rows_of("usage_run_day", "final"), "{} days of usage cannot be computed again: their samples are gone"),
)
_TABLES = (
    "usage_dirty",
    "usage_run_day",
    "usage_host_run_day",
    "usage_device_run_day",
    "usage_ingest_day",
    "storage_day",
    "usage_name",
    "rate",
    "cost_centre",
    "cost_centre_assignment",
    "plan",
    "plan_limit",
    "entity_plan",
    "usage_alert",
    "billing_document",
    "statement",
    "statement_line",
    "statement_counter",
)


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "usage_dirty",
        sa.Column("lane_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", ordered, nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("marked_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lane_id", "day", name="pk_usage_dirty"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_run_day",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", ordered, nullable=False),
        sa.Column("entity_id", sa.Integer()),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("service_account_id", sa.Integer()),
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tracked_ms", sa.BigInteger(), nullable=False),
        sa.Column("host_ms", sa.BigInteger(), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "day", name="pk_usage_run_day"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_run_day_day", "usage_run_day", ["day"])
    op.create_index("ix_usage_run_day_state", "usage_run_day", ["state"])
    op.create_table(
        "usage_host_run_day",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", ordered, nullable=False),
        sa.Column("host", ordered, nullable=False),
        sa.Column("covered", sa.Text(), nullable=False),
        sa.Column("covered_ms", sa.BigInteger(), nullable=False),
        sa.Column("measured_mj", sa.BigInteger(), nullable=False),
        sa.Column("unknown_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "day", "host", name="pk_usage_host_run_day"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_host_run_day_host", "usage_host_run_day", ["host", "day"])
    op.create_table(
        "usage_device_run_day",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", ordered, nullable=False),
        sa.Column("host", ordered, nullable=False),
        sa.Column("device_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("model", ordered, nullable=False),
        sa.Column("used", sa.Boolean()),
        sa.Column("share_ms", sa.BigInteger(), nullable=False),
        sa.Column("busy_ms", sa.BigInteger(), nullable=False),
        sa.Column("idle_ms", sa.BigInteger(), nullable=False),
        sa.Column("measured_mj", sa.BigInteger(), nullable=False),
        sa.Column("estimated_mj", sa.BigInteger(), nullable=False),
        sa.Column("unknown_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "day", "host", "device_id", name="pk_usage_device_run_day"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_device_run_day_day", "usage_device_run_day", ["day"])
    op.create_table(
        "usage_ingest_day",
        sa.Column("run_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", ordered, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "day", name="pk_usage_ingest_day"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_ingest_day_day", "usage_ingest_day", ["day"])
    op.create_table(
        "storage_day",
        sa.Column("day", ordered, nullable=False),
        sa.Column("project_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", ordered, nullable=False),
        sa.Column("entity_id", sa.Integer()),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "project_id", "kind", name="pk_storage_day"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_name",
        sa.Column("kind", ordered, nullable=False),
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "id", name="pk_usage_name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rate",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("device_glob", sa.Text(), nullable=False),
        sa.Column("price_micro", sa.BigInteger(), nullable=False),
        sa.Column("valid_from", ordered, nullable=False),
        sa.Column("valid_to", ordered),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rate"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "cost_centre",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("code", ordered, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("purchase_order", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cost_centre"),
        sa.UniqueConstraint("code", name="uq_cost_centre_code"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "cost_centre_assignment",
        sa.Column("kind", ordered, nullable=False),
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("valid_from", ordered, nullable=False),
        sa.Column("cost_centre_id", sa.Integer()),
        sa.PrimaryKeyConstraint("kind", "id", "valid_from", name="pk_cost_centre_assignment"),
        sa.ForeignKeyConstraint(
            ["cost_centre_id"], ["cost_centre.id"], name="fk_cost_centre_assignment_cost_centre_id"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "plan",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", ordered, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_plan"),
        sa.UniqueConstraint("name", name="uq_plan_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "plan_limit",
        sa.Column("plan_id", sa.Integer(), nullable=False),
        sa.Column("category", ordered, nullable=False),
        sa.Column("included", sa.Double(), nullable=False),
        sa.Column("limit_units", sa.Double()),
        sa.Column("refuse_new_runs", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("plan_id", "category", name="pk_plan_limit"),
        sa.ForeignKeyConstraint(["plan_id"], ["plan.id"], name="fk_plan_limit_plan_id", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "entity_plan",
        sa.Column("entity_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("valid_from", ordered, nullable=False),
        sa.Column("plan_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "valid_from", name="pk_entity_plan"),
        sa.ForeignKeyConstraint(["plan_id"], ["plan.id"], name="fk_entity_plan_plan_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_alert",
        sa.Column("period", ordered, nullable=False),
        sa.Column("entity_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("category", ordered, nullable=False),
        sa.Column("kind", ordered, nullable=False),
        sa.Column("threshold", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("limit_then", sa.Double()),
        sa.Column("sent_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint(
            "period", "entity_id", "category", "kind", "threshold", name="pk_usage_alert"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "billing_document",
        sa.Column("name", ordered, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_billing_document"),
    )
    op.create_table(
        "statement",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("number", ordered),
        sa.Column("period", ordered, nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("scope_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("issued_ms", sa.BigInteger()),
        sa.Column("issued_by", sa.Text()),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("total_micro", sa.BigInteger(), nullable=False),
        sa.Column("settlement", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("replaces_id", sa.Integer()),
        sa.Column("pdf", sa.LargeBinary()),
        sa.Column("digest", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_statement"),
        sa.ForeignKeyConstraint(["replaces_id"], ["statement.id"], name="fk_statement_replaces_id"),
        sa.UniqueConstraint("number", name="uq_statement_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_statement_period", "statement", ["period"])
    op.create_table(
        "statement_line",
        sa.Column("statement_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Double(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("included", sa.Double(), nullable=False),
        sa.Column("price_micro", sa.BigInteger(), nullable=False),
        sa.Column("amount_micro", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("statement_id", "position", name="pk_statement_line"),
        sa.ForeignKeyConstraint(
            ["statement_id"], ["statement.id"], name="fk_statement_line_statement_id", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "statement_counter",
        sa.Column("year", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("year", name="pk_statement_counter"),
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: statements, prices, plans or usage would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in reversed(_TABLES):
        op.drop_table(table)
