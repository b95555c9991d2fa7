"""Reports: documents of text and live panels, who may see them, and what people say."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

_ONE_OF_THREE = (
    " + ".join(
        f"CASE WHEN {name} IS NULL THEN 0 ELSE 1 END" for name in ("project_id", "run_id", "report_id")
    )
    + " = 1"
)
_ORDERED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables of reports."""
    op.create_table(
        "report",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("service_account_id", sa.Integer()),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("head_revision", sa.Integer(), nullable=False),
        sa.Column("published_revision", sa.Integer()),
        sa.Column("published_ms", sa.BigInteger()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name="fk_report_author_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_report_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["service_account_id"],
            ["service_account.id"],
            name="fk_report_service_account_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_report"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_report_author_id", "report", ["author_id"])
    op.create_index("ix_report_project_id_changed_ms", "report", ["project_id", "changed_ms"])
    op.create_index("ix_report_service_account_id", "report", ["service_account_id"])
    op.create_table(
        "frozen_panel",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("panel_id", _ORDERED, nullable=False),
        sa.Column("frozen_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("digest", _ORDERED, nullable=False),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_frozen_panel_report_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "panel_id", "frozen_ms", name="pk_frozen_panel"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "report_comment",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("reply_to", sa.Integer()),
        sa.Column("author_id", sa.Integer()),
        sa.Column("block", sa.Text()),
        sa.Column("panel", sa.Text()),
        sa.Column("x", sa.Double()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger()),
        sa.Column("resolved_ms", sa.BigInteger()),
        sa.Column("resolved_by", sa.Integer()),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name="fk_report_comment_author_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["reply_to"], ["report_comment.id"], name="fk_report_comment_reply_to", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_comment_report_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["resolved_by"], ["user_account.id"], name="fk_report_comment_resolved_by", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_report_comment"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_report_comment_author_id", "report_comment", ["author_id"])
    op.create_index("ix_report_comment_reply_to", "report_comment", ["reply_to"])
    op.create_index("ix_report_comment_report_id", "report_comment", ["report_id"])
    op.create_table(
        "report_file",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("digest", _ORDERED, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.CheckConstraint("kind IN ('image', 'frozen')", name="ck_report_file_kind"),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name="fk_report_file_author_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_file_report_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "digest", name="pk_report_file"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_file_author_id", "report_file", ["author_id"])
    op.create_table(
        "report_follow",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_follow_report_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_report_follow_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "user_id", name="pk_report_follow"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_follow_user_id", "report_follow", ["user_id"])
    op.create_table(
        "report_pin",
        sa.Column("entity_id", sa.Integer(), nullable=False),
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_report_pin_entity_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_pin_report_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("entity_id", "report_id", name="pk_report_pin"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_pin_report_id", "report_pin", ["report_id"])
    op.create_table(
        "report_share",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("role IN ('view', 'edit')", name="ck_report_share_role"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["user_account.id"], name="fk_report_share_created_by", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_share_report_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_report_share_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "user_id", name="pk_report_share"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_share_user_id", "report_share", ["user_id"])
    op.create_table(
        "report_star",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_star_report_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_report_star_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "user_id", name="pk_report_star"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_star_user_id", "report_star", ["user_id"])
    op.create_table(
        "report_version",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("is_published", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name="fk_report_version_author_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_report_version_report_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", "revision", name="pk_report_version"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_version_author_id", "report_version", ["author_id"])
    op.create_table(
        "wandb_report",
        sa.Column("report_id", sa.Integer(), nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report_id"], ["report.id"], name="fk_wandb_report_report_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report_id", name="pk_wandb_report"),
    )
    op.create_table(
        "report_reaction",
        sa.Column("comment_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("emoji", _ORDERED, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["comment_id"], ["report_comment.id"], name="fk_report_reaction_comment_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_report_reaction_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("comment_id", "user_id", "emoji", name="pk_report_reaction"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_report_reaction_user_id", "report_reaction", ["user_id"])
    with _rebuild_links() as table:
        if not _is_sqlite():  # there, copies have no checks
            table.drop_constraint("ck_guest_link_one_target", type_="check")
        table.add_column(sa.Column("report_id", sa.Integer()))
        table.create_foreign_key(
            "fk_guest_link_report_id", "report", ["report_id"], ["id"], ondelete="CASCADE"
        )
        table.create_check_constraint("ck_guest_link_one_target", _ONE_OF_THREE)
    op.create_index("ix_guest_link_report_id", "guest_link", ["report_id"])


def downgrade() -> None:
    """Remove the tables: all reports are lost."""
    op.execute("DELETE FROM guest_link WHERE report_id IS NOT NULL")
    op.drop_index("ix_guest_link_report_id", "guest_link")
    with _rebuild_links() as table:
        if not _is_sqlite():
            table.drop_constraint("ck_guest_link_one_target", type_="check")
        table.drop_constraint("fk_guest_link_report_id", type_="foreignkey")
        table.drop_column("report_id")
        table.create_check_constraint("ck_guest_link_one_target", "(project_id IS NULL) <> (run_id IS NULL)")
    op.drop_table("report_reaction")
    op.drop_table("wandb_report")
    op.drop_table("report_version")
    op.drop_table("report_star")
    op.drop_table("report_share")
    op.drop_table("report_pin")
    op.drop_table("report_follow")
    op.drop_table("report_file")
    op.drop_table("report_comment")
    op.drop_table("frozen_panel")
    op.drop_table("report")


def _rebuild_links() -> Any:
    recreate: Literal["always", "never"] = "always" if _is_sqlite() else "never"
    alone = {"resolve_fks": False}  # the tables that it refers to stay as they are
    return op.batch_alter_table(
        "guest_link",
        recreate=recreate,
        reflect_kwargs=alone,
        table_kwargs={"sqlite_autoincrement": True},
    )


def _is_sqlite() -> bool:
    return bool(op.get_bind().dialect.name == "sqlite")
