"""The table of requests that came with an idempotency key."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, Text

from runvitals.store.metadata.table_base import metadata

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
