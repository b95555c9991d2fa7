"""The tables of sweeps."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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

# `name`: what users know it by. `source`: the configuration as the client sent it, YAML; `configuration`: the
# same as JSON. `places`: how many runs the search has chosen parameters for.
sweep = Table(
    "sweep",
    metadata,
    id_column(),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("name", ordered_text(), nullable=False),
    Column("display_name", Text),
    Column("description", Text),
    Column("source", Text, nullable=False),
    Column("configuration", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("places", Integer, nullable=False),
    Column("author_id", Integer, ForeignKey("user_account.id")),
    Column("service_account_id", Integer, ForeignKey("service_account.id", ondelete="SET NULL")),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    UniqueConstraint("project_id", "name"),
    CheckConstraint("state IN ('pending', 'running', 'paused', 'finished', 'canceled')", name="state"),
    sqlite_autoincrement=True,
)

# A process that starts runs of a sweep one after the other. `heard_ms`: when the server last heard from it.
sweep_agent = Table(
    "sweep_agent",
    metadata,
    id_column(),
    Column("sweep_id", Integer, ForeignKey("sweep.id", ondelete="CASCADE"), nullable=False),
    Column("host", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("heard_ms", BigInteger, nullable=False),
    Index(None, "sweep_id", "heard_ms"),
    sqlite_autoincrement=True,
)

# A run of a sweep, also before it has begun: then `run_id` is null. `run_name`: the client's id of the run.
# `place`: of the parameters in the search; null for a run that joined with parameters of its own. `agent_id`:
# the agent that is to start it. `tries`: how often it was sent to one. `parameters`: JSON; null: not known
# yet. `value`: of the sweep's metric. `marks`: a JSON list of costs at the brackets of an early termination.
sweep_run = Table(
    "sweep_run",
    metadata,
    id_column(),
    Column("sweep_id", Integer, ForeignKey("sweep.id", ondelete="CASCADE"), nullable=False),
    Column("run_name", ordered_text(), nullable=False),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="SET NULL"), index=True),
    Column("place", Integer),
    Column("agent_id", Integer, ForeignKey("sweep_agent.id", ondelete="SET NULL"), index=True),
    Column("tries", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("parameters", Text),
    Column("value", Double),
    Column("marks", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("sweep_id", "run_name"),
    UniqueConstraint("sweep_id", "place"),
    CheckConstraint("state IN ('assigned', 'begun', 'stopping', 'ended')", name="state"),
    Index(None, "sweep_id", "state"),
    sqlite_autoincrement=True,
)
