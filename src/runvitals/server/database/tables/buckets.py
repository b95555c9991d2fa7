"""The tables of buckets that keep the files of teams."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, LargeBinary, Table, Text

from runvitals.server.database.table_base import id_column, metadata, ordered_text

# `location`: JSON, where it is; `sealed`: credentials, encrypted; null: those of the environment. `checked`:
# JSON, the steps of the last check. `away_ms`: since when it cannot be used; null: it can.
bucket = Table(
    "bucket",
    metadata,
    id_column(),
    Column("name", ordered_text(), nullable=False, unique=True),
    Column("location", Text, nullable=False),
    Column("sealed", LargeBinary),
    Column("created_ms", BigInteger, nullable=False),
    Column("created_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    Column("checked", Text),
    Column("checked_ms", BigInteger),
    Column("away_ms", BigInteger),
    Column("away_reason", Text),
    sqlite_autoincrement=True,
)

# The bucket that a team was given when it was made. It stays when the team is removed: its files are removed
# later.
team_bucket = Table(
    "team_bucket",
    metadata,
    Column("team_id", Integer, ForeignKey("entity.id"), primary_key=True),
    Column("bucket_id", Integer, ForeignKey("bucket.id"), nullable=False, index=True),
)
