"""The tables of what users are notified about runs, and how they want to be notified."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _to(name: str, column: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, Integer, ForeignKey(column, ondelete="CASCADE"), nullable=nullable)


# `life`: see `run_events`. `key`: tells apart events of one kind in one life. `data`: a JSON object.
# `state`: new, held or done.
run_alert_event = Table(
    "run_alert_event",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    _to("run_id", "run.id"),
    Column("life", BigInteger, nullable=False),
    Column("event", ordered_text(), nullable=False),
    Column("key", ordered_text(), nullable=False),
    Column("level", Text, nullable=False),
    Column("time_ms", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    Column("state", Text, nullable=False),
    UniqueConstraint("run_id", "life", "event", "key", name="uq_run_alert_event_run_id"),
    Index("ix_run_alert_event_state", "state", "id"),
    Index("ix_run_alert_event_event", "event", "time_ms"),
    Index("ix_run_alert_event_time_ms", "time_ms"),
    sqlite_autoincrement=True,
)

# Up to when a user has seen what the bell of the page shows.
inbox_seen = Table(
    "inbox_seen",
    metadata,
    Column(
        "user_id",
        Integer,
        ForeignKey("user_account.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("seen_ms", BigInteger, nullable=False),
)

# `data`: a JSON object, see `alerts.settings`.
user_alerts = Table(
    "user_alerts",
    metadata,
    Column(
        "user_id",
        Integer,
        ForeignKey("user_account.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("data", Text, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

team_alerts = Table(
    "team_alerts",
    metadata,
    Column(
        "team_id",
        Integer,
        ForeignKey("team.entity_id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("data", Text, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

# What a user wants to be notified of one team, project or run. `mode`: off or all.
alert_exception = Table(
    "alert_exception",
    metadata,
    id_column(),
    _to("user_id", "user_account.id"),
    _to("team_id", "team.entity_id", nullable=True),
    _to("project_id", "project.id", nullable=True),
    _to("run_id", "run.id", nullable=True),
    Column("mode", Text, nullable=False),
    Index(
        "uq_alert_exception_user_id",
        "user_id",
        text("coalesce(team_id, 0)"),
        text("coalesce(project_id, 0)"),
        text("coalesce(run_id, 0)"),
        unique=True,
    ),
    Index(None, "team_id"),
    Index(None, "project_id"),
    Index(None, "run_id"),
    sqlite_autoincrement=True,
)

# What waits for the end of quiet hours or for the next digest.
waiting_alert = Table(
    "waiting_alert",
    metadata,
    id_column(),
    _to("user_id", "user_account.id"),
    Column("channel", Text, nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("due_ms", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("user_id", "channel", "event_id", name="uq_waiting_alert_user_id"),
    Index(None, "due_ms"),
    sqlite_autoincrement=True,
)
