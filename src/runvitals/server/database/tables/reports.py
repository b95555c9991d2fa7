"""The tables of reports: documents, their versions and files, who may see them, and what people say."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text

# `head_revision`: of the working copy. `published_revision`: what readers see; null for a draft, which only
# its author and those it is shared with may see. `words`: title, description and text of the published
# revision in lower case, for searches.
report = Table(
    "report",
    metadata,
    id_column(),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("service_account_id", Integer, ForeignKey("service_account.id", ondelete="SET NULL"), index=True),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("head_revision", Integer, nullable=False),
    Column("published_revision", Integer),
    Column("published_ms", BigInteger),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Column("deleted_ms", BigInteger),
    Index("ix_report_project_id_changed_ms", "project_id", "changed_ms"),
    sqlite_autoincrement=True,
)

# `document`: title, description and blocks as JSON, compressed by zlib. `is_published`: it
# was published once.
report_version = Table(
    "report_version",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("document", LargeBinary, nullable=False),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("is_published", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

# `kind`: `image`, which blocks show, or `frozen`, the values of a panel. `digest`: SHA-256, in hexadecimal.
# `place`: as of `stored_file`.
report_file = Table(
    "report_file",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", ordered_text(), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("place", Integer, nullable=False, server_default=text("0")),
    CheckConstraint("kind IN ('image', 'frozen')", name="kind"),
    sqlite_with_rowid=False,
)

# The values of a panel on the day on which it was frozen.
frozen_panel = Table(
    "frozen_panel",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("panel_id", ordered_text(), primary_key=True),
    Column("frozen_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", ordered_text(), nullable=False),
    sqlite_with_rowid=False,
)

report_share = Table(
    "report_share",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, nullable=False),
    Column("created_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    Column("created_ms", BigInteger, nullable=False),
    CheckConstraint("role IN ('view', 'edit')", name="role"),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

report_star = Table(
    "report_star",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

report_follow = Table(
    "report_follow",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

# `seen_ms`: when the page on which a user edits the report was open last.
report_editor = Table(
    "report_editor",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("seen_ms", BigInteger, nullable=False),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

# `place`: the reports that the profile of a team or user shows, in this order.
report_pin = Table(
    "report_pin",
    metadata,
    Column("entity_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), primary_key=True),
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, nullable=False),
    Index(None, "report_id"),
    sqlite_with_rowid=False,
)

# `block`, `panel`: what it is about; null: the report. `x`: the point of the panel's x-axis.
report_comment = Table(
    "report_comment",
    metadata,
    id_column(),
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("reply_to", Integer, ForeignKey("report_comment.id", ondelete="CASCADE"), index=True),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL"), index=True),
    Column("block", Text),
    Column("panel", Text),
    Column("x", Double),
    Column("text", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger),
    Column("resolved_ms", BigInteger),
    Column("resolved_by", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    sqlite_autoincrement=True,
)

report_reaction = Table(
    "report_reaction",
    metadata,
    Column("comment_id", Integer, ForeignKey("report_comment.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True),
    Column("emoji", ordered_text(), primary_key=True),
    Column("created_ms", BigInteger, nullable=False),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

# What a client of W&B sent for a report, compressed by zlib: it gets back what our blocks cannot hold.
wandb_report = Table(
    "wandb_report",
    metadata,
    Column("report_id", Integer, ForeignKey("report.id", ondelete="CASCADE"), primary_key=True),
    Column("spec", LargeBinary, nullable=False),
)
