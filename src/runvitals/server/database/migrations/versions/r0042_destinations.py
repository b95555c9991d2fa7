"""One table of where messages go: webhooks, Slack and Apprise of teams, and Slack of users."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection, text

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

_OF_TEAMS = {"webhook": "team_webhook", "slack": "slack_destination", "apprise": "apprise_destination"}
_READ = {
    "webhook": """SELECT id AS number, team_id, name, url, payload, enabled, access_secret_id,
        signing_secret_id, created_by, created_ms FROM team_webhook ORDER BY id""",
    "slack": """SELECT id AS number, team_id, channel AS name, sealed, shown, created_by, created_ms,
        disabled_ms FROM slack_destination ORDER BY id""",
    "apprise": """SELECT id AS number, team_id, name, sealed, shown, created_by, created_ms
        FROM apprise_destination ORDER BY id""",
    "user-slack": """SELECT user_id, sealed, shown, created_ms, disabled_ms FROM user_slack
        ORDER BY user_id""",
}
_SECRETS = ("access_secret_id", "signing_secret_id")
_REFERS_TO = {
    "team_id": ("team.entity_id", "CASCADE"),
    "user_id": ("user_account.id", "CASCADE"),
    "created_by": ("user_account.id", "SET NULL"),
    **dict.fromkeys(_SECRETS, ("team_secret.id", "SET NULL")),
}
_SETTINGS = ("url", "payload", "shown")
_NEW = sa.table(
    "destination",
    *(sa.column(name) for name in ("id", "kind", "number", "team_id", "user_id", "name", "settings")),
    *(sa.column(name) for name in ("sealed", "enabled", "access_secret_id", "signing_secret_id")),
    *(sa.column(name) for name in ("created_by", "created_ms", "disabled_ms")),
)


def upgrade() -> None:
    """Move webhooks, Slack and Apprise destinations into one table."""
    connection = op.get_bind()
    op.create_table(
        "destination",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("kind", _ordered_text(), nullable=False),
        sa.Column("number", sa.Integer()),
        sa.Column("team_id", sa.Integer()),
        sa.Column("user_id", sa.Integer()),
        sa.Column("name", _ordered_text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("access_secret_id", sa.Integer()),
        sa.Column("signing_secret_id", sa.Integer()),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_destination"),
        sa.UniqueConstraint("kind", "number", name="uq_destination_kind_number"),
        sa.UniqueConstraint("team_id", "kind", "name", name="uq_destination_team_id_kind_name"),
        sa.UniqueConstraint("user_id", "kind", name="uq_destination_user_id_kind"),
        *_foreign_keys("destination", "team_id", "user_id", "created_by", *_SECRETS),
        sqlite_autoincrement=True,
    )
    for column in _SECRETS:
        op.create_index(f"ix_destination_{column}", "destination", [column])
    # The number of a new destination is its id: it must not be one that another has, or had.
    last = max(_last_id(connection, table) for table in _OF_TEAMS.values())
    rows = [row for kind, query in _READ.items() for row in _rows(connection, kind, query)]
    for number, row in enumerate(rows, last + 1):
        row |= {"id": number, "number": row.get("number") or number}
    if rows:
        connection.execute(sa.insert(_NEW), rows)
    _continue_after(connection, "destination", last + len(rows))
    for table in (*_OF_TEAMS.values(), "user_slack"):
        op.drop_table(table)


def downgrade() -> None:
    """Move destinations back into a table for each kind."""
    connection = op.get_bind()
    _create_tables()
    last = _last_id(connection, "destination")
    for kind, table in (*_OF_TEAMS.items(), ("user-slack", "user_slack")):
        of_kind = connection.execute(sa.select(_NEW).where(_NEW.c.kind == kind).order_by(_NEW.c.number))
        columns = {column["name"] for column in sa.inspect(connection).get_columns(table)}
        for row in of_kind.mappings().all():
            values = {**row, **json.loads(row["settings"]), "id": row["number"], "channel": row["name"]}
            of_table = {name: value for name, value in values.items() if name in columns}
            into = sa.table(table, *(sa.column(name) for name in of_table))
            connection.execute(sa.insert(into).values(of_table))
        if kind in _OF_TEAMS:
            _continue_after(connection, table, last)
    op.drop_table("destination")


def _ordered_text() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.dialects.postgresql.TEXT(collation="C"), "postgresql")


def _foreign_keys(table: str, *columns: str) -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint(
            [column], [_REFERS_TO[column][0]], name=f"fk_{table}_{column}", ondelete=_REFERS_TO[column][1]
        )
        for column in columns
    ]


def _rows(connection: Connection, kind: str, query: str) -> list[dict[str, Any]]:
    """The rows of an earlier table as those of the new one, without ids."""
    rows = []
    for earlier in connection.execute(text(query)).mappings():
        row = {column.name: None for column in _NEW.columns} | {"kind": kind, "name": "", "enabled": True}
        row |= {name: value for name, value in earlier.items() if name not in _SETTINGS}
        settings = {name: earlier[name] for name in _SETTINGS if name in earlier}
        rows.append({**row, "enabled": bool(row["enabled"]), "settings": json.dumps(settings)})
    return rows


def _last_id(connection: Connection, table: str) -> int:
    """The largest id that the database has assigned in a table, whether the row is there or not."""
    if connection.dialect.name == "sqlite":
        result = connection.execute(
            text("SELECT seq FROM sqlite_sequence WHERE name = :table"), {"table": table}
        )
        return int(result.scalar() or 0)
    sequence = connection.execute(text(f"SELECT pg_get_serial_sequence('{table}', 'id')")).scalar()
    return int(
        connection.execute(
            text(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
        ).scalar()
        or 0
    )


def _continue_after(connection: Connection, table: str, last: int) -> None:
    """Let the database assign ids of a table that are larger than one."""
    if not last:
        return
    if connection.dialect.name == "sqlite":
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), {"table": table})
        connection.execute(
            text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)"),
            {"table": table, "last": last},
        )
    else:
        connection.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), :last)"), {"last": last}
        )


def _create_tables() -> None:
    """The tables of the revision before."""
    op.create_table(
        "team_webhook",
        *_naming("team_webhook", "name"),
        sa.Column("url", sa.Text(), nullable=False),
        *(sa.Column(column, sa.Integer()) for column in _SECRETS),
        sa.Column("payload", sa.Text()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        *_foreign_keys("team_webhook", *_SECRETS),
        sqlite_autoincrement=True,
    )
    for column in _SECRETS:
        op.create_index(f"ix_team_webhook_{column}", "team_webhook", [column])
    op.create_table(
        "slack_destination",
        *_naming("slack_destination", "channel"),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "user_slack",
        sa.Column("user_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("user_id", name="pk_user_slack"),
        *_foreign_keys("user_slack", "user_id"),
    )
    op.create_table(
        "apprise_destination",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("name", _ordered_text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_apprise_destination"),
        sa.UniqueConstraint("team_id", "name", name="uq_apprise_destination_team_id_name"),
        *_foreign_keys("apprise_destination", "team_id", "created_by"),
        sqlite_autoincrement=True,
    )


def _naming(table: str, name: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column(name, _ordered_text(), nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("team_id", name, name=f"uq_{table}_team_id_{name}"),
        *_foreign_keys(table, "team_id", "created_by"),
    ]
