"""Integrations of teams: secrets, webhooks and Slack destinations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_LOSSES = (
    (rows_of("slack_destination"), "teams have {} Slack destinations: delete them"),
    (rows_of("team_webhook"), "teams have {} webhooks: delete them"),
    (rows_of("team_secret"), "teams have {} secrets, which cannot be read again: delete them"),
)


def upgrade() -> None:
    op.create_table(
        "team_secret",
        *_named("team_secret", "name"),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("changed_by", sa.Integer()),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        _to_author("team_secret", "changed_by"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "team_webhook",
        *_named("team_webhook", "name"),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("access_secret_id", sa.Integer()),
        sa.Column("signing_secret_id", sa.Integer()),
        sa.Column("payload", sa.Text()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        _to_secret("access_secret_id"),
        _to_secret("signing_secret_id"),
        sqlite_autoincrement=True,
    )
    for column in ("access_secret_id", "signing_secret_id"):
        op.create_index(f"ix_team_webhook_{column}", "team_webhook", [column])
    op.create_table(
        "slack_destination",
        *_named("slack_destination", "channel"),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: secrets, webhooks or Slack destinations would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in ("slack_destination", "team_webhook", "team_secret"):
        op.drop_table(table)


def _named(table: str, name: str) -> list[sa.schema.SchemaItem]:
    """The columns that all three tables have. `name`: the column that is unique in a team."""
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    return [
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column(name, ordered, nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("team_id", name, name=f"uq_{table}_team_id_{name}"),
        sa.ForeignKeyConstraint(
            ["team_id"], ["team.entity_id"], name=f"fk_{table}_team_id", ondelete="CASCADE"
        ),
        _to_author(table, "created_by"),
    ]


def _to_author(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], ["user_account.id"], name=f"fk_{table}_{column}", ondelete="SET NULL"
    )


def _to_secret(column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], ["team_secret.id"], name=f"fk_team_webhook_{column}", ondelete="SET NULL"
    )
