"""The tables of requests: those that came with an idempotency key, and those that the server sends."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, Text

from runvitals.server.database.table_base import id_column, metadata

# `digest`: of the credential and the key, keyed. `principal`: whose requests are counted together. `request`:
# a keyed digest, because a body may have a password in it. `attempt`: which process carries it out. `status`
# null: it is not finished. `answer`: encrypted; null if it was too long.
idempotent_request = Table(
    "idempotent_request",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("attempt", LargeBinary, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("status", Integer),
    Column("answer", LargeBinary),
    Index(None, "principal", "started_ms"),
    Index(None, "started_ms"),
)

# Where the audit log is sent: one row, or none. `sealed`: the secret of the signatures, encrypted. `sent_id`:
# the newest event that was delivered. `gaps`: ids below it that have not appeared, in JSON. `claimed_by`: the
# server that is sending, until `claimed_until_ms`.
audit_webhook = Table(
    "audit_webhook",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("url", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("sent_id", BigInteger, nullable=False),
    Column("gaps", Text, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until_ms", BigInteger),
    Column("delivered_ms", BigInteger),
    Column("problem", Text),
)

# Mail about changes that were made where none can be sent, on the command line, until a server sends it.
# `message`: JSON, of `mail.message.Message`.
mail_draft = Table(
    "mail_draft",
    metadata,
    id_column(),
    Column("address", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("time_zone", Text),
    Column("created_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
