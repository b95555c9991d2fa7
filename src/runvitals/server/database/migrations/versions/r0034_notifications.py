"""The outbox of notifications, automations of teams, and more places where notifications go."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0034"
down_revision = "0030"
branch_labels = None
depends_on = None

_LOSSES = (
    (rows_of("automation"), "there are {} automations: delete them"),
    (rows_of("notification", "state = 'pending'"), "{} notifications wait to be sent"),
    (rows_of("user_slack"), "{} users have connected Slack: disconnect them"),
    (rows_of("apprise_destination"), "teams have {} destinations of Apprise: delete them"),
)


def _created(*, author: bool = True) -> list[sa.Column[int]]:
    columns = [sa.Column("created_ms", sa.BigInteger(), nullable=False)]
    return [sa.Column("created_by", sa.Integer()), *columns] if author else columns


def _foreign_key(table: str, column: str, other: str, ondelete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [other], name=f"fk_{table}_{column}", ondelete=ondelete)


def _add_automations(ordered: sa.types.TypeEngine[str]) -> None:
    op.create_table(
        "automation",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("name", ordered, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        *_created(),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_automation"),
        _foreign_key("automation", "team_id", "team.entity_id"),
        _foreign_key("automation", "created_by", "user_account.id", "SET NULL"),
        sa.UniqueConstraint("team_id", "name", name="uq_automation_team_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_automation_event_team_id", "automation", ["event", "team_id"])
    op.create_table(
        "raised_event",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", ordered, nullable=False),
        sa.Column("run_id", sa.Integer()),
        sa.Column("automation_id", sa.Integer()),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_raised_event"),
        _foreign_key("raised_event", "team_id", "team.entity_id"),
        _foreign_key("raised_event", "run_id", "run.id"),
        _foreign_key("raised_event", "automation_id", "automation.id"),
        sa.UniqueConstraint("key", name="uq_raised_event_key"),
        sqlite_autoincrement=True,
    )
    for column in ("team_id", "run_id", "automation_id"):
        op.create_index(f"ix_raised_event_{column}", "raised_event", [column])
    op.create_table(
        "automation_firing",
        sa.Column("automation_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("subject", ordered, nullable=False),
        sa.Column("fired_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("automation_id", "subject", name="pk_automation_firing"),
        _foreign_key("automation_firing", "automation_id", "automation.id"),
    )
    op.create_index("ix_automation_firing_fired_ms", "automation_firing", ["fired_ms"])


def _add_outbox(ordered: sa.types.TypeEngine[str]) -> None:
    op.create_table(
        "notification",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("dedupe_key", ordered, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", ordered, nullable=False),
        sa.Column("subject", ordered, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Integer()),
        sa.Column("automation_id", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=False),
        sa.Column("give_up_ms", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("answer", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
        _foreign_key("notification", "team_id", "team.entity_id"),
        _foreign_key("notification", "automation_id", "automation.id", "SET NULL"),
        sa.UniqueConstraint("dedupe_key", name="uq_notification_dedupe_key"),
        sqlite_autoincrement=True,
    )
    for columns in (
        ["state", "target", "subject", "id"],
        ["team_id", "ended_ms"],
        ["automation_id", "id"],
        ["ended_ms"],
    ):
        op.create_index(f"ix_notification_{'_'.join(columns)}", "notification", columns)


def upgrade() -> None:
    ordered = sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")
    _add_automations(ordered)
    _add_outbox(ordered)
    op.create_table(
        "user_slack",
        sa.Column("user_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        *_created(author=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("user_id", name="pk_user_slack"),
        _foreign_key("user_slack", "user_id", "user_account.id"),
    )
    op.create_table(
        "apprise_destination",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("name", ordered, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        *_created(),
        sa.PrimaryKeyConstraint("id", name="pk_apprise_destination"),
        _foreign_key("apprise_destination", "team_id", "team.entity_id"),
        _foreign_key("apprise_destination", "created_by", "user_account.id", "SET NULL"),
        sa.UniqueConstraint("team_id", "name", name="uq_apprise_destination_team_id_name"),
        sqlite_autoincrement=True,
    )
    op.add_column("slack_destination", sa.Column("disabled_ms", sa.BigInteger()))


def downgrade() -> None:
    """What was sent in the last month is forgotten.

    Raises:
        RuntimeError: automations, destinations or notifications would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.execute("ALTER TABLE slack_destination DROP COLUMN disabled_ms")
    for table in ("apprise_destination", "user_slack", "notification"):
        op.drop_table(table)
    for table in ("automation_firing", "raised_event", "automation"):
        op.drop_table(table)
