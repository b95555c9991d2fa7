"""Remembers the run ids of runs that were deleted for good, so that their writers do not create them anew.

Only runs of teams and users are remembered. In a store without accounts, a writer that still sends creates
its run anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, select

from runvitals.server.database.database import add_rows
from runvitals.server.database.tables.runs import run_tombstone

_DIGEST_BYTES = 16
_DIGESTS_PER_QUERY = 500


def remember_purged(connection: Connection, runs: Iterable[tuple[int | None, str]], now_ms: int) -> None:
    """Remember runs, given by entity and run id."""
    rows = [
        {"entity_id": entity_id, "uid_digest": _digest(uid), "purged_ms": now_ms}
        for entity_id, uid in runs
        if entity_id is not None
    ]
    add_rows(connection, run_tombstone, rows)


def find_purged(
    connection: Connection, runs: Collection[tuple[int | None, str]]
) -> set[tuple[int | None, str]]:
    """Return those of these runs, given by entity and run id, that were deleted for good."""
    keys = {(entity_id, _digest(uid)): (entity_id, uid) for entity_id, uid in runs if entity_id is not None}
    digests = sorted({digest for _, digest in keys})
    purged: set[tuple[int | None, str]] = set()
    for first in range(0, len(digests), _DIGESTS_PER_QUERY):
        among_digests = run_tombstone.c.uid_digest.in_(digests[first : first + _DIGESTS_PER_QUERY])
        of_entities = run_tombstone.c.entity_id.in_({entity_id for entity_id, _ in keys})
        rows = connection.execute(
            select(run_tombstone.c.entity_id, run_tombstone.c.uid_digest).where(of_entities, among_digests)
        )
        purged.update(keys[entity_id, digest] for entity_id, digest in rows if (entity_id, digest) in keys)
    return purged


def _digest(uid: str) -> bytes:
    return hashlib.sha256(uid.encode()).digest()[:_DIGEST_BYTES]
