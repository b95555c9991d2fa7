"""Creates a store of format 1 without the store's code: later versions must be able to read it.

Run 7 with metrics 1 and 2: a chunk of six ticks of each, a pack of two ticks, and a batch in the log.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import zlib

T0 = 1_790_812_800_000  # 2026-10-01 00:00 UTC
SECOND = 1000
TICKS = [T0 + n * SECOND for n in range(9)]
ONES = [float(n) for n in range(9)]
TWOS = [-0.0, float("inf"), 2.5, 1e300, -7.0, 5e-324, 6.0, 7.0, 8.0]

LOG = """
CREATE TABLE columns (id INTEGER PRIMARY KEY, metrics BLOB NOT NULL UNIQUE);
CREATE TABLE log (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
CREATE TABLE mark (run INTEGER, writer INTEGER, first INTEGER, last INTEGER NOT NULL,
    PRIMARY KEY (run, writer, first)) WITHOUT ROWID;
CREATE TABLE sealed (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE deleted (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, done INTEGER NOT NULL);
CREATE TABLE damaged (seq INTEGER PRIMARY KEY, batches BLOB NOT NULL);
PRAGMA application_id = 0x52564C31;
PRAGMA user_version = 1;
"""
MONTH = """
CREATE TABLE run (run INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, chunks_t1 INTEGER,
    samples INTEGER NOT NULL, rolled INTEGER NOT NULL, seals INTEGER NOT NULL, sealed_ms INTEGER NOT NULL);
CREATE INDEX run_to_compact ON run (sealed_ms) WHERE seals > 0;
CREATE TABLE chunk (run INTEGER, metric INTEGER, t0 INTEGER, t1 INTEGER NOT NULL, ticks INTEGER NOT NULL,
    summary BLOB NOT NULL, times INTEGER NOT NULL, data INTEGER NOT NULL,
    PRIMARY KEY (run, metric, t0)) WITHOUT ROWID;
CREATE TABLE times (id INTEGER PRIMARY KEY, chunks INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE data (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE pack (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, columns INTEGER NOT NULL,
    t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, ticks INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX pack_run ON pack (run);
CREATE TABLE columns (id INTEGER PRIMARY KEY, metrics BLOB NOT NULL UNIQUE);
CREATE TABLE rollup (metric INTEGER, day INTEGER, run INTEGER, summary BLOB NOT NULL,
    PRIMARY KEY (metric, day, run)) WITHOUT ROWID;
CREATE TABLE damaged (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, metric INTEGER, t0 INTEGER NOT NULL,
    t1 INTEGER NOT NULL, ticks INTEGER, times BLOB, data BLOB, reason TEXT NOT NULL);
PRAGMA application_id = 0x52564D31;
PRAGMA user_version = 1;
"""
COLUMNS = struct.pack("<2I", 1, 2)


def make(folder: str) -> None:
    os.makedirs(folder)
    with _database(os.path.join(folder, "log.db"), LOG) as log:
        log.execute("INSERT INTO columns VALUES (4, ?)", (COLUMNS,))
        log.execute("INSERT INTO mark VALUES (7, 9, 1, 2)")
        log.execute("INSERT INTO sealed VALUES (7, 41)")
        batches = struct.pack("<QQQII", 7, 9, 3, 4, len(_body(8, 9))) + _body(8, 9)
        log.execute("INSERT INTO log VALUES (42, ?)", (struct.pack("<I", zlib.crc32(batches)) + batches,))
    log.close()
    with _database(os.path.join(folder, "samples-2026-10.db"), MONTH) as month:
        month.execute("INSERT INTO run VALUES (7, ?, ?, ?, 16, 0, 1, 0)", (TICKS[0], TICKS[7], TICKS[5]))
        month.execute("INSERT INTO columns VALUES (1, ?)", (COLUMNS,))
        month.execute("INSERT INTO pack VALUES (1, 7, 1, ?, ?, 2, ?)", (TICKS[6], TICKS[7], _body(6, 8)))
        month.execute("INSERT INTO times VALUES (1, 2, ?)", (_decimal_chunk(TICKS[0], [SECOND] * 5),))
        month.execute("INSERT INTO data VALUES (1, ?)", (_decimal_chunk(0, [1] * 5),))
        month.execute("INSERT INTO data VALUES (2, ?)", (_zstd_chunk(TWOS[:6]),))
        for metric, values in ((1, ONES[:6]), (2, TWOS[:6])):
            mean = sum(values) / 6
            summary = struct.pack("<II4d", 6, 0, min(values), max(values), mean, values[5])
            month.execute(
                "INSERT INTO chunk VALUES (7, ?, ?, ?, 6, ?, 1, ?)",
                (metric, TICKS[0], TICKS[5], summary, metric),
            )
    month.close()


def _database(path: str, schema: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; {schema}")
    return connection


def _body(first: int, end: int) -> bytes:
    rows = end - first
    columns = (*ONES[first:end], *TWOS[first:end])
    raw = struct.pack(f"<{rows}q", *TICKS[first:end]) + struct.pack(f"<{2 * rows}d", *columns)
    return struct.pack("<BI", 2, rows) + zlib.compress(raw)


def _chunk(codec: int, payload: bytes) -> bytes:
    return struct.pack("<BI", codec, zlib.crc32(payload, codec)) + payload


def _uncompressed(raw: bytes) -> bytes:
    """A zstd frame with one uncompressed block."""
    block = len(raw) << 3 | 1
    return b"\x28\xb5\x2f\xfd" + bytes([0x20, len(raw)]) + block.to_bytes(3, "little") + raw


def _decimal_chunk(first: int, steps: list[int]) -> bytes:
    return _chunk(2, struct.pack("<BBq", 0, 1, first) + _uncompressed(struct.pack(f"<{len(steps)}h", *steps)))


def _zstd_chunk(values: list[float]) -> bytes:
    return _chunk(3, _uncompressed(struct.pack(f"<{len(values)}d", *values)))
