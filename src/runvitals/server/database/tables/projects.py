"""The tables of what projects have besides members: stars, guest links, views, addresses from before."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text

project_star = Table(
    "project_star",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    sqlite_with_rowid=False,
)

guest_link = Table(
    "guest_link",
    metadata,
    id_column(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), index=True),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), index=True),
    Column("created_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), index=True),
    CheckConstraint(
        " + ".join(
            f"CASE WHEN {name} IS NULL THEN 0 ELSE 1 END" for name in ("project_id", "run_id", "report_id")
        )
        + " = 1",
        name="one_target",
    ),
    sqlite_autoincrement=True,
)

# Where a project was before it was renamed or given to another entity.
project_redirect = Table(
    "project_redirect",
    metadata,
    Column("entity_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), primary_key=True),
    Column("name", ordered_text(), primary_key=True),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# `user_id`: whose view it is; null for those that are published for the project. `data`: a JSON object.
saved_view = Table(
    "saved_view",
    metadata,
    id_column(),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), index=True),
    Column("kind", Text, nullable=False),
    Column("name", ordered_text(), nullable=False),
    Column("data", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Index(None, "project_id", "kind"),
    sqlite_autoincrement=True,
)
