"""Links that let anyone read a project or a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "guest_link",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Integer()),
        sa.Column("run_id", sa.Integer()),
        sa.Column("created_by", sa.Integer()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.Column("revoked_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_guest_link"),
        sa.UniqueConstraint("digest", name="uq_guest_link_digest"),
        sa.CheckConstraint("(project_id IS NULL) <> (run_id IS NULL)", name="ck_guest_link_one_target"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_guest_link_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_guest_link_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["user_account.id"], name="fk_guest_link_created_by", ondelete="SET NULL"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_guest_link_project_id", "guest_link", ["project_id"])
    op.create_index("ix_guest_link_run_id", "guest_link", ["run_id"])
