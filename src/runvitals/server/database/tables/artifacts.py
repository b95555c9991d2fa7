"""The tables of artifacts."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text

# A named list of versions. `kind`: in a sequence they were logged, in a portfolio linked. `next_version`: a
# number is never used twice. `tags`: a JSON list. `ttl_s`: of versions that say nothing about it; null: kept.
artifact_collection = Table(
    "artifact_collection",
    metadata,
    id_column(),
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", ordered_text(), nullable=False),
    Column("type", ordered_text(), nullable=False),
    Column("description", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("next_version", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("ttl_s", BigInteger),
    UniqueConstraint("project_id", "name"),
    CheckConstraint("kind IN ('sequence', 'portfolio')", name="kind"),
    sqlite_autoincrement=True,
)

# `version`: null in a draft. `digest`: of the manifest, as the client computes it. `manifest_kind`: whether
# the manifest has all entries, or adds to those of `base_id`. `aliases`: those that the version gets once it
# is committed; like `tags` a JSON list. `ttl_s` null: nothing was said. `client_id`, `distributed_id`: how
# clients name a version that they have not sent yet, and one that several processes send together.
# `read_day`: the last day, since 1970, on which a file of it was requested; null: none is known.
artifact_version = Table(
    "artifact_version",
    metadata,
    id_column(),
    Column(
        "collection_id", Integer, ForeignKey("artifact_collection.id", ondelete="CASCADE"), nullable=False
    ),
    Column("version", Integer),
    Column("state", Text, nullable=False),
    Column("digest", ordered_text(), nullable=False),
    Column("manifest_kind", Text, nullable=False),
    Column("base_id", Integer),
    Column("description", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("aliases", Text, nullable=False),
    Column("ttl_s", BigInteger),
    Column("history_step", BigInteger),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="SET NULL"), index=True),
    Column("author_id", Integer, ForeignKey("user_account.id", ondelete="SET NULL")),
    Column("client_id", ordered_text(), index=True),
    Column("distributed_id", ordered_text()),
    Column("bytes", BigInteger, nullable=False),
    Column("files", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("read_day", Integer),
    Index(None, "collection_id", "digest"),
    Index(None, "state", "created_ms"),
    CheckConstraint("state IN ('draft', 'committed', 'deleted')", name="state"),
    CheckConstraint("manifest_kind IN ('full', 'incremental', 'patch')", name="manifest_kind"),
    sqlite_autoincrement=True,
)

# The committed versions of a collection: those of a sequence are its own, those of a portfolio were linked.
artifact_membership = Table(
    "artifact_membership",
    metadata,
    id_column(),
    Column(
        "collection_id", Integer, ForeignKey("artifact_collection.id", ondelete="CASCADE"), nullable=False
    ),
    Column("version_id", Integer, ForeignKey("artifact_version.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("collection_id", "number"),
    UniqueConstraint("version_id", "collection_id"),
    sqlite_autoincrement=True,
)

artifact_alias = Table(
    "artifact_alias",
    metadata,
    Column(
        "collection_id", Integer, ForeignKey("artifact_collection.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("alias", ordered_text(), primary_key=True),
    Column(
        "membership_id",
        Integer,
        ForeignKey("artifact_membership.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    sqlite_with_rowid=False,
)

# The manifests of versions. `reference`: where the content is, if it is not kept here; then `digest` is
# whatever identifies it there. `extra`: a JSON object; null: none. `birth_id`: the version that had the file
# first.
artifact_entry = Table(
    "artifact_entry",
    metadata,
    Column("version_id", Integer, ForeignKey("artifact_version.id", ondelete="CASCADE"), primary_key=True),
    Column("path", ordered_text(), primary_key=True),
    Column("digest", ordered_text(), nullable=False),
    Column("bytes", BigInteger),
    Column("reference", Text),
    Column("file_id", Integer, ForeignKey("stored_file.id"), index=True),
    Column("birth_id", Integer),
    Column("extra", Text),
    sqlite_with_rowid=False,
)

# The contents that a project has for its artifacts, by the digest that clients use. `used_ms`: when a client
# last asked for it or sent it; it is kept for some days after that, so that drafts can be completed.
artifact_content = Table(
    "artifact_content",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
    Column("digest", ordered_text(), primary_key=True),
    Column("file_id", Integer, ForeignKey("stored_file.id"), nullable=False, index=True),
    Column("used_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The runs that used a version.
artifact_use = Table(
    "artifact_use",
    metadata,
    Column("version_id", Integer, ForeignKey("artifact_version.id", ondelete="CASCADE"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("used_as", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
