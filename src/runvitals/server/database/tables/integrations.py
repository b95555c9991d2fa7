"""The tables of teams' integrations: secrets, webhooks and Slack destinations."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _to_team() -> Column[int]:
    return Column("team_id", Integer, ForeignKey("team.entity_id", ondelete="CASCADE"), nullable=False)


def _to_author(name: str) -> Column[int]:
    return Column(name, Integer, ForeignKey("user_account.id", ondelete="SET NULL"))


def _to_secret(name: str) -> Column[int]:
    return Column(name, Integer, ForeignKey("team_secret.id", ondelete="SET NULL"))


# `sealed`: the value, encrypted.
team_secret = Table(
    "team_secret",
    metadata,
    id_column(),
    _to_team(),
    Column("name", ordered_text(), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    _to_author("created_by"),
    Column("created_ms", BigInteger, nullable=False),
    _to_author("changed_by"),
    Column("changed_ms", BigInteger, nullable=False),
    UniqueConstraint("team_id", "name"),
    sqlite_autoincrement=True,
)

# `payload`: a template in JSON; null: none. The secrets are of the same team.
team_webhook = Table(
    "team_webhook",
    metadata,
    id_column(),
    _to_team(),
    Column("name", ordered_text(), nullable=False),
    Column("url", Text, nullable=False),
    _to_secret("access_secret_id"),
    _to_secret("signing_secret_id"),
    Column("payload", Text),
    Column("enabled", Boolean, nullable=False),
    _to_author("created_by"),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("team_id", "name"),
    Index(None, "access_secret_id"),
    Index(None, "signing_secret_id"),
    sqlite_autoincrement=True,
)

# `sealed`: the URL, encrypted: who has it can post. `shown`: its host and last characters. `disabled_ms`:
# since when Slack no longer accepts it.
slack_destination = Table(
    "slack_destination",
    metadata,
    id_column(),
    _to_team(),
    Column("channel", ordered_text(), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("shown", Text, nullable=False),
    _to_author("created_by"),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
    UniqueConstraint("team_id", "channel"),
    sqlite_autoincrement=True,
)
