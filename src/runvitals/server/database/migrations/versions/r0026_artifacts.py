"""Artifacts: versions of files that runs make and use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from runvitals.server.database.lossless_downgrade import check_nothing_is_lost, rows_of

revision = "0026"
down_revision = "0029"
branch_labels = None
depends_on = None

ORDERED_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

_LOSSES = (
    (rows_of("artifact_version"), "there are {} versions of artifacts: delete their collections"),
    (rows_of("artifact_collection"), "there are {} collections of artifacts: delete them"),
    (rows_of("artifact_content"), "projects have {} contents of artifacts: delete those projects for good"),
)
_TABLES = ("use", "content", "entry", "alias", "membership", "version", "collection")


def _foreign_key(
    table: str, column: str, target: str, ondelete: str | None = "CASCADE"
) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete=ondelete)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer(), sa.Identity(), nullable=False)


def upgrade() -> None:
    _add_collections()
    _add_versions()
    _add_contents()


def _add_collections() -> None:
    op.create_table(
        "artifact_collection",
        _id(),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", ORDERED_TEXT, nullable=False),
        sa.Column("type", ORDERED_TEXT, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("next_version", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifact_collection"),
        sa.UniqueConstraint("project_id", "name", name="uq_artifact_collection_project_id_name"),
        sa.CheckConstraint("kind IN ('sequence', 'portfolio')", name="ck_artifact_collection_kind"),
        _foreign_key("artifact_collection", "project_id", "project"),
        sqlite_autoincrement=True,
    )


def _add_versions() -> None:
    op.create_table(
        "artifact_version",
        _id(),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("digest", ORDERED_TEXT, nullable=False),
        sa.Column("manifest_kind", sa.Text(), nullable=False),
        sa.Column("base_id", sa.Integer()),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("ttl_s", sa.BigInteger()),
        sa.Column("history_step", sa.BigInteger()),
        sa.Column("run_id", sa.Integer()),
        sa.Column("author_id", sa.Integer()),
        sa.Column("client_id", ORDERED_TEXT),
        sa.Column("distributed_id", ORDERED_TEXT),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifact_version"),
        sa.CheckConstraint("state IN ('draft', 'committed', 'deleted')", name="ck_artifact_version_state"),
        sa.CheckConstraint(
            "manifest_kind IN ('full', 'incremental', 'patch')", name="ck_artifact_version_manifest_kind"
        ),
        _foreign_key("artifact_version", "collection_id", "artifact_collection"),
        _foreign_key("artifact_version", "run_id", "run", "SET NULL"),
        _foreign_key("artifact_version", "author_id", "user_account", "SET NULL"),
        sqlite_autoincrement=True,
    )
    for columns in (["collection_id", "digest"], ["state", "created_ms"], ["run_id"], ["client_id"]):
        op.create_index(f"ix_artifact_version_{'_'.join(columns)}", "artifact_version", columns)
    op.create_table(
        "artifact_membership",
        _id(),
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifact_membership"),
        sa.UniqueConstraint("collection_id", "number", name="uq_artifact_membership_collection_id_number"),
        sa.UniqueConstraint(
            "version_id", "collection_id", name="uq_artifact_membership_version_id_collection_id"
        ),
        _foreign_key("artifact_membership", "collection_id", "artifact_collection"),
        _foreign_key("artifact_membership", "version_id", "artifact_version"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "artifact_alias",
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("alias", ORDERED_TEXT, nullable=False),
        sa.Column("membership_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("collection_id", "alias", name="pk_artifact_alias"),
        _foreign_key("artifact_alias", "collection_id", "artifact_collection"),
        _foreign_key("artifact_alias", "membership_id", "artifact_membership"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_artifact_alias_membership_id", "artifact_alias", ["membership_id"])


def _add_contents() -> None:
    op.create_table(
        "artifact_entry",
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("path", ORDERED_TEXT, nullable=False),
        sa.Column("digest", ORDERED_TEXT, nullable=False),
        sa.Column("bytes", sa.BigInteger()),
        sa.Column("reference", sa.Text()),
        sa.Column("file_id", sa.Integer()),
        sa.Column("birth_id", sa.Integer()),
        sa.Column("extra", sa.Text()),
        sa.PrimaryKeyConstraint("version_id", "path", name="pk_artifact_entry"),
        _foreign_key("artifact_entry", "version_id", "artifact_version"),
        _foreign_key("artifact_entry", "file_id", "stored_file", None),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_artifact_entry_file_id", "artifact_entry", ["file_id"])
    op.create_table(
        "artifact_content",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("digest", ORDERED_TEXT, nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("used_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "digest", name="pk_artifact_content"),
        _foreign_key("artifact_content", "project_id", "project"),
        _foreign_key("artifact_content", "file_id", "stored_file", None),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_artifact_content_file_id", "artifact_content", ["file_id"])
    op.create_table(
        "artifact_use",
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("used_as", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("version_id", "run_id", name="pk_artifact_use"),
        _foreign_key("artifact_use", "version_id", "artifact_version"),
        _foreign_key("artifact_use", "run_id", "run"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_artifact_use_run_id", "artifact_use", ["run_id"])


def downgrade() -> None:
    """
    Raises:
        RuntimeError: artifacts would be lost.
    """
    check_nothing_is_lost(op.get_bind(), revision, _LOSSES)
    for table in _TABLES:
        op.drop_table(f"artifact_{table}")
