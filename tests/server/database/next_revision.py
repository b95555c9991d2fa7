"""A later version of runvitals, whose tables have one more revision: a new table, and a rebuilt one."""

from __future__ import annotations

import shutil
from pathlib import Path

from runvitals.server.database import migration

NEXT = "0999"
_SCRIPT = """
import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "{revision}"
down_revision = "{before}"
earlier_servers_go_on = {servers_go_on}


def upgrade():
    op.create_table(
        "badge",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_badge"),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name="fk_badge_user_id"),
        sqlite_autoincrement=True,
    )
    with rebuild("user_account") as table:
        table.add_column(sa.Column("colour", sa.Text()))


def downgrade():
    check_nothing_is_lost(op.get_bind(), revision, [(rows_of("badge"), "{{}} badges: delete them")])
    op.drop_table("badge")
    with rebuild("user_account") as table:
        table.drop_column("colour")


def rebuild(table):
    recreate = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    return op.batch_alter_table(table, recreate=recreate, table_kwargs={{"sqlite_autoincrement": True}})
"""


def later_version(folder: Path, servers_go_on: bool = False) -> str:
    """A folder with all revisions and the next one, to be put in the place of `migration.FOLDER`.

    Args:
        servers_go_on: servers of the version before can use the changed tables.
    """
    shutil.copytree(migration.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    script = _SCRIPT.format(revision=NEXT, before=migration.newest(), servers_go_on=servers_go_on)
    (folder / "versions" / f"r{NEXT}_next.py").write_text(script)
    return str(folder)
