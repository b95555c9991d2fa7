"""Names of projects and run ids are unique within a team or user's own space, no longer in the whole store.

Runs get a copy of their project's entity, for the index. A store without accounts has one set of names, as
before: there the entity is null. Users get a default team.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_PROJECT_NAME = "CREATE UNIQUE INDEX uq_project_name_entity_id ON project (name, coalesce(entity_id, 0))"
_RUN_UID = "CREATE UNIQUE INDEX uq_run_uid_entity_id ON run (uid, coalesce(entity_id, 0))"
_RUN_INDEXES = {
    "ix_run_name": ["name", "id", "deleted_ms"],
    "ix_run_project": ["project_id", "started_ms", "id", "deleted_ms"],
    "ix_run_started": ["started_ms", "id", "deleted_ms"],
    "ix_run_state": ["alive_until_ms", "settled_state", "project_id", "deleted_ms"],
}
_AUTHOR_INDEX = ["author_id", "started_ms", "id", "deleted_ms"]
_PROJECT_COLUMNS = "id, name, created_ms, entity_id, owner_id, visibility"
_RUN_COLUMNS = (
    "id, uid, project_id, name, group_name, job_type, created_ms, started_ms, last_ms, alive_until_ms, "
    "settled_state, exit_code, signal, out_of_memory, stop_requested_ms, deleted_ms, author_id, "
    "service_account_id"
)
_ENTITY_OF_RUN = "(SELECT entity_id FROM project WHERE project.id = run.project_id)"
_LOSSES = (
    (
        "SELECT name FROM project GROUP BY name HAVING count(*) > 1 ORDER BY name LIMIT 1",
        "several teams or users have a project {!r}: rename all but one",
    ),
    (
        "SELECT uid FROM run GROUP BY uid HAVING count(*) > 1 ORDER BY uid LIMIT 1",
        "several teams or users have a run {!r}: delete all but one for good",
    ),
    (
        rows_of("run_tombstone"),
        "{} runs were deleted for good, and their ids could be used again; if they may, empty run_tombstone",
    ),
    (
        rows_of("user_account", "default_entity_id IS NOT NULL"),
        "{} users have set a default team: set user_account.default_entity_id to null",
    ),
)


def upgrade() -> None:
    op.create_table(
        "run_tombstone",
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("uid_digest", sa.LargeBinary(), nullable=False),
        sa.Column("purged_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["entity_id"], ["entity.id"], name="fk_run_tombstone_entity_id"),
        sa.PrimaryKeyConstraint("entity_id", "uid_digest", name="pk_run_tombstone"),
        sqlite_with_rowid=False,
    )
    op.execute("ALTER TABLE writer ADD COLUMN api_key_id INTEGER")
    op.execute("ALTER TABLE user_account ADD COLUMN default_entity_id INTEGER")
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_project()
        _rebuild_run(with_entity=True)
    else:
        op.drop_constraint("uq_project_name", "project")
        op.drop_constraint("uq_run_uid", "run")
        op.execute(
            "ALTER TABLE run ADD COLUMN entity_id INTEGER CONSTRAINT fk_run_entity_id REFERENCES entity (id)"
        )
        op.execute(f"UPDATE run SET entity_id = {_ENTITY_OF_RUN}")
    op.execute(_PROJECT_NAME)
    op.execute(_RUN_UID)
    op.create_index("ix_run_author", "run", _AUTHOR_INDEX)


def downgrade() -> None:
    """Which key a writer used is forgotten.

    Raises:
        RuntimeError: the same name in two teams, the run ids of deleted runs, or a user's default team would
            be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    op.drop_table("run_tombstone")
    op.execute("ALTER TABLE writer DROP COLUMN api_key_id")
    op.execute("ALTER TABLE user_account DROP COLUMN default_entity_id")
    op.drop_index("uq_project_name_entity_id", "project")
    op.drop_index("uq_run_uid_entity_id", "run")
    op.drop_index("ix_run_author", "run")
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_project(sa.UniqueConstraint("name", name="uq_project_name"))
        _rebuild_run(sa.UniqueConstraint("uid", name="uq_run_uid"))
    else:
        op.drop_column("run", "entity_id")
        op.create_unique_constraint("uq_project_name", "project", ["name"])
        op.create_unique_constraint("uq_run_uid", "run", ["uid"])


def _rebuild_project(*constraints: sa.UniqueConstraint) -> None:
    """SQLite cannot drop or add a constraint: copy the table (https://sqlite.org/lang_altertable.html).

    `migration` has switched foreign keys off; otherwise dropping a table would delete the rows that refer to
    it.
    """
    op.create_table(
        "project_new",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("entity_id", sa.Integer()),
        sa.Column("owner_id", sa.Integer()),
        sa.Column("visibility", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_project"),
        sa.ForeignKeyConstraint(["entity_id"], ["entity.id"], name="fk_project_entity_id"),
        sa.ForeignKeyConstraint(["owner_id"], ["user_account.id"], name="fk_project_owner_id"),
        *constraints,
        sqlite_autoincrement=True,
    )
    op.execute(
        f"INSERT INTO project_new ({_PROJECT_COLUMNS}) SELECT {_PROJECT_COLUMNS} FROM project ORDER BY id"
    )
    _replace("project")


def _rebuild_run(*constraints: sa.UniqueConstraint, with_entity: bool = False) -> None:
    owner: list[sa.Column[int] | sa.ForeignKeyConstraint] = []
    if with_entity:
        owner = [
            sa.Column("entity_id", sa.Integer()),
            sa.ForeignKeyConstraint(["entity_id"], ["entity.id"], name="fk_run_entity_id"),
        ]
    op.create_table(
        "run_new",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("uid", ORDERED_TEXT, nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("group_name", ORDERED_TEXT, nullable=False),
        sa.Column("job_type", ORDERED_TEXT, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("alive_until_ms", sa.BigInteger()),
        sa.Column("settled_state", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("signal", sa.BigInteger()),
        sa.Column("out_of_memory", sa.Boolean()),
        sa.Column("stop_requested_ms", sa.BigInteger()),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.Column("author_id", sa.Integer()),
        sa.Column("service_account_id", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_run_project_id"),
        sa.ForeignKeyConstraint(["author_id"], ["user_account.id"], name="fk_run_author_id"),
        sa.ForeignKeyConstraint(
            ["service_account_id"],
            ["service_account.id"],
            name="fk_run_service_account_id",
            ondelete="SET NULL",
        ),
        *owner,
        *constraints,
        sqlite_autoincrement=True,
    )
    target, source = (
        (f"{_RUN_COLUMNS}, entity_id", f"{_RUN_COLUMNS}, {_ENTITY_OF_RUN}")
        if with_entity
        else (_RUN_COLUMNS, _RUN_COLUMNS)
    )
    op.execute(f"INSERT INTO run_new ({target}) SELECT {source} FROM run ORDER BY id")
    _replace("run")
    for name, columns in _RUN_INDEXES.items():
        op.create_index(name, "run", columns)


def _replace(table: str) -> None:
    """Put the copy in the place of a table. Ids of deleted rows stay used."""
    op.execute(f"DELETE FROM sqlite_sequence WHERE name = '{table}_new'")
    op.execute(
        "INSERT INTO sqlite_sequence (name, seq) "
        f"SELECT '{table}_new', seq FROM sqlite_sequence WHERE name = '{table}'"
    )
    op.drop_table(table)
    op.rename_table(f"{table}_new", table)
