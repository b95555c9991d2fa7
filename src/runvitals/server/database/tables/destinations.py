"""The tables of secrets, and of where messages go."""

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
    return Column("team_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), nullable=False)


def _to_author(name: str) -> Column[int]:
    return Column(name, Integer, ForeignKey("user_account.id", ondelete="SET NULL"))


def _to_secret(name: str) -> Column[int]:
    return Column(name, Integer, ForeignKey("team_secret.id", ondelete="SET NULL"))


# `team_id`: of a team or the organisation. `sealed`: the value, encrypted.
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

# Where messages go. `kind`: webhook, slack or apprise of a team or the organisation, user-slack of a user.
# `number`: what it is called among those of its kind, never used again: its id, unless it is older than this
# table. `settings`: a JSON object, see `alerts.destinations`. `sealed`: the URL, encrypted, if who has it can
# post. `disabled_ms`: since when Slack no longer accepts it. The secrets are of the same team.
destination = Table(
    "destination",
    metadata,
    id_column(),
    Column("kind", ordered_text(), nullable=False),
    Column("number", Integer),
    Column("team_id", Integer, ForeignKey("entity.id", ondelete="CASCADE")),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE")),
    Column("name", ordered_text(), nullable=False),
    Column("settings", Text, nullable=False),
    Column("sealed", LargeBinary),
    Column("enabled", Boolean, nullable=False),
    _to_secret("access_secret_id"),
    _to_secret("signing_secret_id"),
    _to_author("created_by"),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
    UniqueConstraint("kind", "number"),
    UniqueConstraint("team_id", "kind", "name"),
    UniqueConstraint("user_id", "kind"),
    Index(None, "access_secret_id"),
    Index(None, "signing_secret_id"),
    sqlite_autoincrement=True,
)
