"""The tables of notifications and automations."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _to_team(*, nullable: bool = False) -> Column[int]:
    """Return the column of the team that something belongs to, or of the organisation."""
    return Column("team_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), nullable=nullable)


def _to_author() -> Column[int]:
    return Column("created_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL"))


# `registry_id`: the only registry of the organisation that it is about. `event`: the kind of event.
# `definition`: event, filter and actions, as JSON. `problem`: why the server switched it off; null: it did
# not.
automation = Table(
    "automation",
    metadata,
    id_column(),
    _to_team(),
    Column("registry_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), index=True),
    Column("name", ordered_text(), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("event", Text, nullable=False),
    Column("definition", Text, nullable=False),
    _to_author(),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Column("problem", Text),
    Index("uq_automation_team_id_name", "team_id", text("coalesce(registry_id, 0)"), "name", unique=True),
    Index(None, "event", "team_id"),
    sqlite_autoincrement=True,
)

# What happened that automations of a team react to, until they have. `key`: the same for the same event.
# `automation_id`: the only one that it is for; null: all of this kind. `data`: JSON.
raised_event = Table(
    "raised_event",
    metadata,
    id_column(),
    _to_team(),
    Column("kind", Text, nullable=False),
    Column("key", ordered_text(), nullable=False, unique=True),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), index=True),
    Column("automation_id", Integer, ForeignKey("automation.id", ondelete="CASCADE"), index=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    Index(None, "team_id"),
    sqlite_autoincrement=True,
)

# When an automation last acted on something, for its cool-down.
automation_firing = Table(
    "automation_firing",
    metadata,
    Column(
        "automation_id",
        Integer,
        ForeignKey("automation.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("subject", ordered_text(), primary_key=True),
    Column("fired_ms", BigInteger, nullable=False),
    Index(None, "fired_ms"),
)

# The outbox. `payload`: JSON. `next_ms`: when it is sent; while a server sends it, when that server counts as
# dead. `state`: pending, sent, failed or dropped. `status`, `answer`: of the receiver.
notification = Table(
    "notification",
    metadata,
    id_column(),
    Column("dedupe_key", ordered_text(), nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("target", ordered_text(), nullable=False),
    Column("subject", ordered_text(), nullable=False),
    Column("text", Text, nullable=False),
    Column("payload", Text, nullable=False),
    _to_team(nullable=True),
    Column("automation_id", Integer, ForeignKey("automation.id", ondelete="SET NULL")),
    Column("created_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger, nullable=False),
    Column("give_up_ms", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("status", Integer),
    Column("answer", Text),
    Column("error", Text),
    Column("ended_ms", BigInteger),
    Index(None, "state", "target", "subject", "id"),
    Index(None, "team_id", "ended_ms"),
    Index(None, "automation_id", "id"),
    Index(None, "ended_ms"),
    sqlite_autoincrement=True,
)
