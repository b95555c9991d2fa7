"""Requests to join teams, mail domains whose users may join, and the ids of requests in the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_NEW_COLUMNS = (
    "team ADD COLUMN join_domains TEXT NOT NULL DEFAULT '[]'",
    "team ADD COLUMN join_by_domain TEXT NOT NULL DEFAULT 'ask'",
    "team ADD COLUMN recommend_by_domain BOOLEAN NOT NULL DEFAULT false",
    "audit_event ADD COLUMN request_id TEXT",
)

_LOSSES = (
    (
        rows_of("team_join_request"),
        "{} requests to join teams are stored: empty team_join_request",
    ),
    (
        rows_of("team", "join_domains <> '[]' OR join_by_domain <> 'ask' OR recommend_by_domain"),
        "{} teams may be joined by people of mail domains: set team.join_domains to '[]', join_by_domain to "
        "'ask' and recommend_by_domain to false",
    ),
    (
        rows_of("audit_event", "request_id IS NOT NULL"),
        "{} events of the audit log have the id of a request: export the log, then set request_id to null",
    ),
)


def upgrade() -> None:
    for column in _NEW_COLUMNS:
        op.execute(f"ALTER TABLE {column}")
    op.create_table(
        "team_join_request",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("ended_by", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_team_join_request"),
        sa.ForeignKeyConstraint(
            ["team_id"], ["team.entity_id"], name="fk_team_join_request_team_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_team_join_request_user_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["ended_by"], ["user_account.id"], name="fk_team_join_request_ended_by", ondelete="SET NULL"
        ),
        sa.CheckConstraint("state IN ('pending', 'approved', 'rejected', 'withdrawn')", name="state"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_team_join_request_user_id", "team_join_request", ["user_id"])
    op.create_index(
        "uq_team_join_request_pending",
        "team_join_request",
        ["team_id", "user_id"],
        unique=True,
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )


def downgrade() -> None:
    """
    Raises:
        RuntimeError: requests to join, mail domains of teams or ids of requests would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("team_join_request")
    for column in reversed(_NEW_COLUMNS):
        table, _, _, name, *_ = column.split()
        op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
