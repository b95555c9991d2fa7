"""The tables of what is wrong with runs."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
)

from runvitals.server.database.table_base import metadata, ordered_text

# What the rules say about a run, at most once for each. `from_ms`, `up_to_ms`: the times of the first and the
# last record of the run that were judged. `is_final`: judged after its end. `severity`: its place in
# `model.run_verdict.SEVERITIES`. `lost_hours`: of devices. `body`: a JSON object, without prices.
# `error`: why the run could not be judged; null if it was. `numbered`: how many findings of the run were ever
# kept.
judgement = Table(
    "judgement",
    metadata,
    Column(
        "run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("rules_version", Integer, nullable=False),
    Column("judged_ms", BigInteger, nullable=False, index=True),
    Column("from_ms", BigInteger, nullable=False),
    Column("up_to_ms", BigInteger, nullable=False),
    Column("is_final", Boolean, nullable=False),
    Column("verdict", ordered_text(), nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("severity", SmallInteger, nullable=False),
    Column("lost_hours", Double, nullable=False),
    Column("body", Text, nullable=False),
    Column("error", Text),
    Column("numbered", Integer, nullable=False),
    Index(None, "is_final", "rules_version"),
)

# A finding about a run, from its begin to its end; `to_ms` is null while it goes on. `number`: its own among
# all that the run ever had. `place`: among the findings of the run, the most important first. `opened_ms`: up
# to when the run was judged when it was noticed. `lost_hours`: those for which no more important finding
# accounts. `share`: of the time of the run. `places`: a JSON object of its hosts, devices and ranks.
finding = Table(
    "finding",
    metadata,
    Column(
        "run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    ),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, nullable=False),
    Column("rule", ordered_text(), nullable=False),
    Column("severity", Text, nullable=False),
    Column("confidence", Text, nullable=False),
    Column("from_ms", BigInteger, nullable=False),
    Column("to_ms", BigInteger),
    Column("opened_ms", BigInteger, nullable=False),
    Column("share", Double, nullable=False),
    Column("device_hours", Double, nullable=False),
    Column("lost_hours", Double, nullable=False),
    Column("text", Text, nullable=False),
    Column("places", Text, nullable=False),
    Index(None, "rule", "run_id"),
    sqlite_with_rowid=False,
)
