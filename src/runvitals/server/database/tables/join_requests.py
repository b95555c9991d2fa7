"""The table of requests to join teams."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text
from sqlalchemy.schema import conv

from runvitals.server.database.table_base import id_column, metadata, unique_where

# `message`: what the user wrote to the team's administrators. `ended_by`: who approved or rejected it.
team_join_request = Table(
    "team_join_request",
    metadata,
    id_column(),
    Column("team_id", Integer, ForeignKey("team.entity_id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("message", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended_ms", BigInteger),
    Column("ended_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    unique_where("uq_team_join_request_pending", "team_id", "user_id", where="state = 'pending'"),
    Index(None, "user_id"),
    CheckConstraint("state IN ('pending', 'approved', 'rejected', 'withdrawn')", name=conv("state")),
    sqlite_autoincrement=True,
)
