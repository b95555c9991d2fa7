"""The organisation may own automations and their receivers; teams may have roles in its registries."""

from __future__ import annotations

from typing import Any, Final, Literal

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None

_OWNED: Final = ("raised_event", "notification", "team_secret", "destination")
_OF_ORGANISATION: Final = "team_id IN (SELECT id FROM entity WHERE kind = 'organisation')"


def upgrade() -> None:
    """Let what belonged to teams belong to any entity, and add the table of teams in registries."""
    op.create_table(
        "registry_team",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_registry_team_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["team.entity_id"], name="fk_registry_team_team_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint("role IN ('viewer', 'member', 'admin')", name="ck_registry_team_role"),
        sa.PrimaryKeyConstraint("project_id", "team_id", name="pk_registry_team"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_registry_team_team_id", "registry_team", ["team_id"])
    for table in _OWNED:
        with _rebuild(table) as change:
            _refer(change, table, "entity.id")
    with _rebuild("automation") as change:
        _refer(change, "automation", "entity.id")
        change.add_column(sa.Column("registry_id", sa.Integer()))
        change.create_foreign_key(
            "fk_automation_registry_id", "project", ["registry_id"], ["id"], ondelete="CASCADE"
        )
        change.drop_constraint("uq_automation_team_id_name", type_="unique")
    op.create_index("ix_automation_registry_id", "automation", ["registry_id"])
    op.create_index(
        "uq_automation_team_id_name",
        "automation",
        ["team_id", sa.text("coalesce(registry_id, 0)"), "name"],
        unique=True,
    )


def downgrade() -> None:
    """Let only teams own them, if the organisation has none and no team has a role in a registry."""
    losses = [(rows_of("registry_team"), "{} teams have roles in registries: remove them first")]
    for table, text in (
        ("automation", "the organisation has {} automations: delete them"),
        ("destination", "the organisation has {} webhooks and channels: delete them"),
        ("team_secret", "the organisation has {} secrets: delete them"),
    ):
        count = f"SELECT count(*) FROM {table} WHERE {_OF_ORGANISATION} HAVING count(*) > 0"
        losses.append((count, text))
    check_nothing_is_lost(op.get_bind(), revision, losses)
    for table in ("raised_event", "notification"):
        op.execute(f"DELETE FROM {table} WHERE {_OF_ORGANISATION}")
    op.drop_index("uq_automation_team_id_name", "automation")
    op.drop_index("ix_automation_registry_id", "automation")
    with _rebuild("automation") as change:
        _refer(change, "automation", "team.entity_id")
        change.drop_constraint("fk_automation_registry_id", type_="foreignkey")
        change.drop_column("registry_id")
        change.create_unique_constraint("uq_automation_team_id_name", ["team_id", "name"])
    for table in _OWNED:
        with _rebuild(table) as change:
            _refer(change, table, "team.entity_id")
    op.drop_table("registry_team")


def _refer(change: Any, table: str, column: str) -> None:
    """Let `team_id` of a table refer to another column."""
    name = f"fk_{table}_team_id"
    change.drop_constraint(name, type_="foreignkey")
    other, _, key = column.partition(".")
    change.create_foreign_key(name, other, ["team_id"], [key], ondelete="CASCADE")


def _rebuild(table: str) -> Any:
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    return op.batch_alter_table(
        table,
        recreate=recreate,
        reflect_kwargs={"resolve_fks": False},
        table_kwargs={"sqlite_autoincrement": True},
    )
