"""The tables of alert rules: what they are, in which state their series are, and when they fired."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _to(name: str, column: str, *, primary_key: bool = False) -> Column[int]:
    key = ForeignKey(column, ondelete="CASCADE")
    return Column(name, Integer, key, nullable=False, primary_key=primary_key)


# `definition`: JSON, see `alerts.rules`. `muted_until_ms`: null: it is not muted.
alert_rule = Table(
    "alert_rule",
    metadata,
    id_column(),
    _to("entity_id", "entity.id"),
    Column("name", ordered_text(), nullable=False),
    Column("definition", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("muted_until_ms", BigInteger),
    Column("created_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    UniqueConstraint("entity_id", "name", name="uq_alert_rule_entity_id"),
    sqlite_autoincrement=True,
)

# The series for which a rule is not simply at rest. `key`: of the metric; `state`: see `alerts.evaluation`.
alert_rule_state = Table(
    "alert_rule_state",
    metadata,
    _to("rule_id", "alert_rule.id", primary_key=True),
    _to("run_id", "run.id", primary_key=True),
    Column("lane_id", Integer, primary_key=True, autoincrement=False),
    Column("key", ordered_text(), primary_key=True),
    Column("host", Text, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("fired_ms", BigInteger),
    Index(None, "run_id"),
)

# When a rule fired for a series. `told`: who was notified, or why nobody was. `value`: null for a silence.
alert_firing = Table(
    "alert_firing",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    _to("rule_id", "alert_rule.id"),
    _to("run_id", "run.id"),
    Column("lane_id", Integer, nullable=False),
    Column("key", ordered_text(), nullable=False),
    Column("host", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("value", Double),
    Column("fired_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("told", Text, nullable=False),
    Index("ix_alert_firing_rule_id", "rule_id", "fired_ms"),
    Index("ix_alert_firing_run_id", "run_id", "fired_ms"),
    Index(None, "fired_ms"),
    sqlite_autoincrement=True,
)
