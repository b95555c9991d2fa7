"""The tables of what accounts send and show: mail that waits, and pictures."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
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

# `sealed`: subject and text, encrypted by the server's key file because links hold secrets; null once the
# mail has ended. `next_ms`: of the next attempt; while an attempt is under way, when it counts as lost.
# `once_key`: what the mail is about, so that servers queue it once; null where one request is one mail.
outgoing_mail = Table(
    "outgoing_mail",
    metadata,
    id_column(),
    Column("message_id", Text, nullable=False),
    Column("once_key", ordered_text()),
    Column("kind", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("address_key", ordered_text(), nullable=False),
    Column("security", Boolean, nullable=False),
    Column("sealed", LargeBinary),
    Column("created_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger, nullable=False),
    Column("give_up_ms", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("ended_ms", BigInteger),
    Column("error", Text),
    Index("ix_outgoing_mail_state", "state", "next_ms"),
    Index("ix_outgoing_mail_address_key", "address_key", "ended_ms"),
    Index(None, "once_key", unique=True),
    CheckConstraint("state IN ('waiting', 'sent', 'failed', 'discarded')", name="state"),
    sqlite_autoincrement=True,
)

# `digest`: SHA-256 of both bodies, in hexadecimal; part of the address, which so never changes its content.
picture = Table(
    "picture",
    metadata,
    id_column(),
    Column("digest", ordered_text(), nullable=False, unique=True),
    Column("large", LargeBinary, nullable=False),
    Column("small", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)

entity_picture = Table(
    "entity_picture",
    metadata,
    Column("entity_id", Integer, ForeignKey("entity.id", ondelete="CASCADE"), primary_key=True),
    Column("picture_id", Integer, ForeignKey("picture.id"), nullable=False, index=True),
)
