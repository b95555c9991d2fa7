"""What users are notified about runs, and rules on metrics."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0035"
down_revision = "0033"
branch_labels = None
depends_on = None

_LOSSES = (
    (rows_of("user_alerts"), "{} users have chosen what they are notified: this is lost"),
    (rows_of("team_alerts"), "{} teams have chosen what they are notified: this is lost"),
    (rows_of("alert_exception"), "there are {} exceptions from what users are notified: remove them"),
    (rows_of("alert_rule"), "there are {} alert rules: delete them"),
)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer(), sa.Identity(), nullable=False)


def _big_id() -> sa.Column[int]:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", number, sa.Identity(), nullable=False)


def _to(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _ordered() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    _events()
    _choices()
    _rules()


def _events() -> None:
    op.create_table(
        "run_alert_event",
        _big_id(),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("life", sa.BigInteger(), nullable=False),
        sa.Column("event", _ordered(), nullable=False),
        sa.Column("key", _ordered(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run_alert_event"),
        _to("run_alert_event", "run_id", "run.id"),
        sa.UniqueConstraint("run_id", "life", "event", "key", name="uq_run_alert_event_run_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_run_alert_event_state", "run_alert_event", ["state", "id"])
    op.create_index("ix_run_alert_event_event", "run_alert_event", ["event", "time_ms"])
    op.create_index("ix_run_alert_event_time_ms", "run_alert_event", ["time_ms"])
    op.create_table(
        "waiting_alert",
        _id(),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_waiting_alert"),
        _to("waiting_alert", "user_id", "user_account.id"),
        sa.UniqueConstraint("user_id", "channel", "event_id", name="uq_waiting_alert_user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_waiting_alert_due_ms", "waiting_alert", ["due_ms"])


def _choices() -> None:
    for table, column, target in (
        ("user_alerts", "user_id", "user_account.id"),
        ("team_alerts", "team_id", "team.entity_id"),
    ):
        op.create_table(
            table,
            sa.Column(column, sa.Integer(), autoincrement=False, nullable=False),
            sa.Column("data", sa.Text(), nullable=False),
            sa.Column("changed_ms", sa.BigInteger(), nullable=False),
            sa.PrimaryKeyConstraint(column, name=f"pk_{table}"),
            _to(table, column, target),
        )
    op.create_table(
        "alert_exception",
        _id(),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.Integer()),
        sa.Column("project_id", sa.Integer()),
        sa.Column("run_id", sa.Integer()),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_exception"),
        _to("alert_exception", "user_id", "user_account.id"),
        _to("alert_exception", "team_id", "team.entity_id"),
        _to("alert_exception", "project_id", "project.id"),
        _to("alert_exception", "run_id", "run.id"),
        sqlite_autoincrement=True,
    )
    none = [sa.text(f"coalesce({column}, 0)") for column in ("team_id", "project_id", "run_id")]
    op.create_index("uq_alert_exception_user_id", "alert_exception", ["user_id", *none], unique=True)
    for column in ("team_id", "project_id", "run_id"):
        op.create_index(f"ix_alert_exception_{column}", "alert_exception", [column])


def _rules() -> None:
    op.create_table(
        "alert_rule",
        _id(),
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("name", _ordered(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("muted_until_ms", sa.BigInteger()),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_rule"),
        _to("alert_rule", "entity_id", "entity.id"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["user_account.id"], name="fk_alert_rule_created_by", ondelete="SET NULL"
        ),
        sa.UniqueConstraint("entity_id", "name", name="uq_alert_rule_entity_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alert_rule_state",
        sa.Column("rule_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("lane_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", _ordered(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("fired_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("rule_id", "run_id", "lane_id", "key", name="pk_alert_rule_state"),
        _to("alert_rule_state", "rule_id", "alert_rule.id"),
        _to("alert_rule_state", "run_id", "run.id"),
    )
    op.create_index("ix_alert_rule_state_run_id", "alert_rule_state", ["run_id"])
    op.create_table(
        "alert_firing",
        _big_id(),
        sa.Column("rule_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("lane_id", sa.Integer(), nullable=False),
        sa.Column("key", _ordered(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("fired_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("told", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_firing"),
        _to("alert_firing", "rule_id", "alert_rule.id"),
        _to("alert_firing", "run_id", "run.id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_firing_rule_id", "alert_firing", ["rule_id", "fired_ms"])
    op.create_index("ix_alert_firing_run_id", "alert_firing", ["run_id", "fired_ms"])
    op.create_index("ix_alert_firing_fired_ms", "alert_firing", ["fired_ms"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: choices or rules would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in (
        "alert_firing",
        "alert_rule_state",
        "alert_rule",
        "alert_exception",
        "team_alerts",
        "user_alerts",
        "waiting_alert",
        "run_alert_event",
    ):
        op.drop_table(table)
