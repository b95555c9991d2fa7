"""Encodes and frames records of a `.wandb` file.

The counterpart of `records` and `transaction_log`, which document the format.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runvitals.base.protobuf import text, uint
from runvitals.readers.wandb_files.transaction_log import BLOCK_BYTES, HEAD

_CHUNK_HEAD_BYTES = 7
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_PRODUCER, _OLDEST_READER = "0.19.0", "0.19.0"  # the W&B versions declared in the header


def header() -> bytes:
    """Return the record that starts a file."""
    return text(21, text(1, text(1, _PRODUCER) + text(2, _OLDEST_READER)))


def run(
    run_id: str,
    entity: str,
    project: str,
    name: str,
    host: str,
    started_ms: int,
    config: Mapping[str, Any],
    group: str = "",
    job_type: str = "",
    notes: str = "",
    tags: Sequence[str] = (),
) -> bytes:
    """Return the run. Fields that are "" are left to W&B's service."""
    texts = {1: run_id, 2: entity, 3: project, 6: group, 7: job_type, 8: name, 9: notes, 13: host}
    body = b"".join(text(number, value) for number, value in texts.items() if value)
    body += text(4, _items(config)) + b"".join(text(10, tag) for tag in tags)
    return text(17, body + _timestamp(17, started_ms))


def config(values: Mapping[str, Any]) -> bytes:
    """Configuration entries that were set."""
    return text(5, _items(values))


def summary(values: Mapping[str, Any]) -> bytes:
    """Summary entries that were set."""
    return text(3, _items(values))


def stats(time_ms: int, values: Mapping[str, float]) -> bytes:
    """Return a sample of the system metrics."""
    items = b"".join(text(3, text(1, key) + text(16, json.dumps(value))) for key, value in values.items())
    return text(7, uint(1, 0) + _timestamp(2, time_ms) + items)


def history(step: int, data: Mapping[str, Any]) -> bytes:
    """Return a logged row; `data` includes `_timestamp` (s UTC) and `_runtime` (s)."""
    return text(2, _items({**data, "_step": step}) + text(2, uint(1, step)))


def output(time_ms: int, error: bool, line: str) -> bytes:
    """Return a piece of console output, of stderr if `error`."""
    return text(13, uint(1, 0 if error else 1) + _timestamp(2, time_ms) + text(3, line))


def exit_record(exit_code: int, runtime_s: int) -> bytes:
    """Encode the exit code of the run, and its duration in seconds."""
    return text(18, uint(1, exit_code) + uint(2, runtime_s))


def _items(values: Mapping[str, Any]) -> bytes:
    return b"".join(text(1, text(1, key) + text(16, json.dumps(value))) for key, value in values.items())


def _timestamp(number: int, time_ms: int) -> bytes:
    return text(number, uint(1, time_ms // 1000) + uint(2, time_ms % 1000 * 1_000_000))


def frame(records: Iterable[bytes], length: int, first_number: int) -> tuple[bytes, int]:
    """Frame records to be appended to a file.

    Args:
        length: current size of the file; if 0, the result starts with the file header.
        first_number: sequence number before the first record's.

    Returns:
        The bytes to append, and the sequence number of the last record.
    """
    number = first_number
    data = bytearray() if length else bytearray(HEAD)
    for payload in records:
        number += 1
        _frame(data, length, uint(1, number) + payload)
    return bytes(data), number


def _frame(data: bytearray, before: int, payload: bytes) -> None:
    """Append a framed record to `data`, which starts at offset `before` of the file."""
    at = 0
    while True:
        room = BLOCK_BYTES - (before + len(data)) % BLOCK_BYTES
        if room < _CHUNK_HEAD_BYTES:
            data += bytes(room)
            continue
        piece = payload[at : at + room - _CHUNK_HEAD_BYTES]
        is_whole, is_last = len(piece) == len(payload), at + len(piece) == len(payload)
        kind = _WHOLE if is_whole else _FIRST if at == 0 else _LAST if is_last else _MIDDLE
        body = bytes((kind,)) + piece
        data += struct.pack("<IH", zlib.crc32(body), len(piece)) + body
        at += len(piece)
        if is_last:
            return
