"""Moves damaged chunks and packs to the table `damaged` if they block a write. Their bytes are kept."""

from __future__ import annotations

import logging
import sqlite3

from runvitals.store.samples.sqlite.chunks import Chunk
from runvitals.store.samples.sqlite.packs import Pack

log = logging.getLogger("runvitals.store")


def set_chunk_aside(connection: sqlite3.Connection, chunk: Chunk, reason: str) -> None:
    """Copy a chunk to the table `damaged`; the caller removes it."""
    connection.execute(
        """INSERT INTO damaged (run, metric, t0, t1, ticks, times, data, reason) VALUES (?, ?, ?, ?, ?,
        (SELECT data FROM times WHERE id=?), (SELECT data FROM data WHERE id=?), ?)""",
        (*chunk[:5], chunk.times, chunk.data, reason),
    )
    log.error("run %d, metric %d: a damaged chunk was set aside: %s", chunk.run, chunk.metric, reason)


def set_pack_aside(connection: sqlite3.Connection, pack: Pack, reason: str) -> None:
    """Copy a pack to the table `damaged`; the caller removes it."""
    connection.execute(
        "INSERT INTO damaged (run, t0, t1, ticks, data, reason) VALUES (?, ?, ?, ?, ?, ?)",
        (pack.run, pack.t0, pack.t1, pack.ticks, pack.body, reason),
    )
    log.error("run %d: a damaged pack was set aside: %s", pack.run, reason)
