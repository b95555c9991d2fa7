"""The organisation may own registries, as a team does; registries may take artifacts of some types only."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Allow an owner of the kind `organisation`, and add the table of types."""
    op.create_table(
        "registry_type",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_registry_type_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "type", name="pk_registry_type"),
        sqlite_with_rowid=False,
    )
    _allow("kind IN ('user', 'team', 'organisation')")


def downgrade() -> None:
    """Forbid it again, if the organisation has no registry, and none has types."""
    theirs = "SELECT count(*) FROM project JOIN entity ON entity.id = project.entity_id"
    losses = [
        (rows_of("registry_type"), "registries take only {} types of artifacts: let them take all"),
        (
            f"{theirs} WHERE entity.kind = 'organisation' HAVING count(*) > 0",
            "the organisation has {} registries: delete them",
        ),
    ]
    check_nothing_is_lost(op.get_bind(), revision, losses)
    op.drop_table("registry_type")
    op.execute("DELETE FROM entity WHERE kind = 'organisation'")
    _allow("kind IN ('user', 'team')")


def _allow(kinds: str) -> None:
    with _rebuild_entities() as table:
        if op.get_bind().dialect.name != "sqlite":  # there, copies have no checks
            table.drop_constraint("ck_entity_kind", type_="check")
        table.create_check_constraint("ck_entity_kind", kinds)


def _rebuild_entities() -> Any:
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    return op.batch_alter_table(
        "entity",
        recreate=recreate,
        reflect_kwargs={"resolve_fks": False},
        table_kwargs={"sqlite_autoincrement": True},
    )
