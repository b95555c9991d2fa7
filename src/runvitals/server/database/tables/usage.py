"""The tables of usage and cost.

Rows of usage outlive what they are about: runs, projects and teams that were deleted still have been used.
So they have ids without foreign keys, and copies of the names. Days are texts such as `2026-11-23`, in the
time zone of the organisation. Durations are milliseconds, energies millijoules, prices and amounts
micro-units of the currency.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _day(primary_key: bool = False) -> Column[str]:
    return Column("day", ordered_text(), primary_key=primary_key, nullable=False)


def _id(name: str) -> Column[int]:
    """A part of the primary key that is an id of another table, which may be gone."""
    return Column(name, Integer, primary_key=True, autoincrement=False)


# Days of lanes whose figures must be computed, because samples came: those from `from_ms` on. Written with
# the heartbeats of writers.
usage_dirty = Table(
    "usage_dirty",
    metadata,
    _id("lane_id"),
    _day(primary_key=True),
    Column("run_id", Integer, nullable=False),
    Column("from_ms", BigInteger, nullable=False),
    Column("marked_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# `state`: of the run, as far as it is known. `final`: samples of the day were dropped, so the figures stay.
# `tracked_ms`: of all hosts together, each time counted once.
usage_run_day = Table(
    "usage_run_day",
    metadata,
    _id("run_id"),
    _day(primary_key=True),
    Column("entity_id", Integer),
    Column("project_id", Integer, nullable=False),
    Column("author_id", Integer),
    Column("service_account_id", Integer),
    Column("job_type", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("tracked_ms", BigInteger, nullable=False),
    Column("host_ms", BigInteger, nullable=False),
    Column("final", Boolean, nullable=False),
    Index(None, "day"),
    Index(None, "state"),
    sqlite_with_rowid=False,
)

# `covered`: a JSON list of the starts and ends of the covered time. `cpu_ms`: CPU time of the run's
# processes; null: not known. `shared_…`: of it, and of `measured_mj`, what is of the time in which other runs
# were on the host.
usage_host_run_day = Table(
    "usage_host_run_day",
    metadata,
    _id("run_id"),
    _day(primary_key=True),
    Column("host", ordered_text(), primary_key=True),
    Column("covered", Text, nullable=False),
    Column("covered_ms", BigInteger, nullable=False),
    Column("measured_mj", BigInteger, nullable=False),
    Column("unknown_ms", BigInteger, nullable=False),
    Column("cpu_ms", BigInteger),
    Column("shared_cpu_ms", BigInteger),
    Column("shared_mj", BigInteger),
    Index("ix_usage_host_run_day_host", "host", "day"),
    sqlite_with_rowid=False,
)

# `used`: by the run; null: unknown. `hung_ms`: null: not computed. `unknown_ms`: for how long the energy is
# not known.
usage_device_run_day = Table(
    "usage_device_run_day",
    metadata,
    _id("run_id"),
    _day(primary_key=True),
    Column("host", ordered_text(), primary_key=True),
    _id("device_id"),
    Column("model", ordered_text(), nullable=False),
    Column("used", Boolean),
    Column("share_ms", BigInteger, nullable=False),
    Column("busy_ms", BigInteger, nullable=False),
    Column("idle_ms", BigInteger, nullable=False),
    Column("measured_mj", BigInteger, nullable=False),
    Column("estimated_mj", BigInteger, nullable=False),
    Column("unknown_ms", BigInteger, nullable=False),
    Column("hung_ms", BigInteger),
    Index(None, "day"),
    sqlite_with_rowid=False,
)

# What was received of a run on a day, whatever its times: `bytes` of envelopes, and `points`, the values.
usage_ingest_day = Table(
    "usage_ingest_day",
    metadata,
    _id("run_id"),
    _day(primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("points", BigInteger, nullable=False),
    Index(None, "day"),
    sqlite_with_rowid=False,
)

# Requests with the keys and sessions of somebody. `owner_kind`: user or service_account.
usage_request_day = Table(
    "usage_request_day",
    metadata,
    Column("owner_kind", ordered_text(), primary_key=True),
    _id("owner_id"),
    _day(primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Index(None, "day"),
    sqlite_with_rowid=False,
)

# What a project stores at the beginning of a day. `kind`: one of `library.measured_library.KINDS`.
storage_day = Table(
    "storage_day",
    metadata,
    _day(primary_key=True),
    _id("project_id"),
    Column("kind", ordered_text(), primary_key=True),
    Column("entity_id", Integer),
    Column("bytes", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Names of what may be gone. `kind`: entity, project, user or service_account.
usage_name = Table(
    "usage_name",
    metadata,
    Column("kind", ordered_text(), primary_key=True),
    _id("id"),
    Column("name", Text, nullable=False),
    sqlite_with_rowid=False,
)

# `valid_to`: the last day; null: no end.
rate = Table(
    "rate",
    metadata,
    id_column(),
    Column("category", Text, nullable=False),
    Column("device_glob", Text, nullable=False),
    Column("price_micro", BigInteger, nullable=False),
    Column("valid_from", ordered_text(), nullable=False),
    Column("valid_to", ordered_text()),
    Column("note", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    sqlite_autoincrement=True,
)

cost_centre = Table(
    "cost_centre",
    metadata,
    id_column(),
    Column("code", ordered_text(), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("contact", Text, nullable=False),
    Column("purchase_order", Text, nullable=False),
    sqlite_autoincrement=True,
)

# Which cost centre pays for a team, user or project from a day on. `kind`: entity or project.
# `cost_centre_id` null: none.
cost_centre_assignment = Table(
    "cost_centre_assignment",
    metadata,
    Column("kind", ordered_text(), primary_key=True),
    _id("id"),
    Column("valid_from", ordered_text(), primary_key=True),
    Column("cost_centre_id", Integer, ForeignKey("cost_centre.id")),
    sqlite_with_rowid=False,
)

plan = Table(
    "plan",
    metadata,
    id_column(),
    Column("name", ordered_text(), nullable=False, unique=True),
    Column("description", Text, nullable=False),
    sqlite_autoincrement=True,
)

# In units of the category: hours, kWh, GB, or the currency for `charges`. `limit_units` null: unlimited.
plan_limit = Table(
    "plan_limit",
    metadata,
    Column("plan_id", Integer, ForeignKey("plan.id", ondelete="CASCADE"), primary_key=True),
    Column("category", ordered_text(), primary_key=True),
    Column("included", Double, nullable=False),
    Column("limit_units", Double),
    Column("refuse_new_runs", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

# `entity_id` 0: the organisation.
entity_plan = Table(
    "entity_plan",
    metadata,
    _id("entity_id"),
    Column("valid_from", ordered_text(), primary_key=True),
    Column("plan_id", Integer, ForeignKey("plan.id"), nullable=False),
    sqlite_with_rowid=False,
)

# Usage alerts that were sent, or left out because a higher one was (`sent_ms` null). `entity_id` 0: the
# organisation. `threshold`: percent of the limit, or an amount of the currency.
usage_alert = Table(
    "usage_alert",
    metadata,
    Column("period", ordered_text(), primary_key=True),
    _id("entity_id"),
    Column("category", ordered_text(), primary_key=True),
    Column("kind", ordered_text(), primary_key=True),
    Column("threshold", Integer, primary_key=True, autoincrement=False),
    Column("value", Double, nullable=False),
    Column("limit_then", Double),
    Column("sent_ms", BigInteger),
    sqlite_with_rowid=False,
)

# What the billing pages keep as one JSON object each: `alerts` and `settlement`.
billing_document = Table(
    "billing_document",
    metadata,
    Column("name", ordered_text(), primary_key=True),
    Column("body", Text, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

# `number`: taken when it is issued. `scope_kind`: entity or cost_centre. `settlement`: JSON, copied when it
# is issued. `replaces_id`: the statement that this one cancels or corrects.
statement = Table(
    "statement",
    metadata,
    id_column(),
    Column("number", ordered_text(), unique=True),
    Column("period", ordered_text(), nullable=False),
    Column("scope_kind", Text, nullable=False),
    Column("scope_id", Integer, nullable=False),
    Column("scope_name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("issued_ms", BigInteger),
    Column("issued_by", Text),
    Column("currency", Text, nullable=False),
    Column("total_micro", BigInteger, nullable=False),
    Column("settlement", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("replaces_id", Integer, ForeignKey("statement.id")),
    Column("pdf", LargeBinary),
    Column("digest", Text),
    Index(None, "period"),
    sqlite_autoincrement=True,
)

statement_line = Table(
    "statement_line",
    metadata,
    Column("statement_id", Integer, ForeignKey("statement.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("quantity", Double, nullable=False),
    Column("unit", Text, nullable=False),
    Column("included", Double, nullable=False),
    Column("price_micro", BigInteger, nullable=False),
    Column("amount_micro", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# How many numbers of statements were taken in a year.
statement_counter = Table(
    "statement_counter",
    metadata,
    Column("year", Integer, primary_key=True, autoincrement=False),
    Column("taken", Integer, nullable=False),
)
