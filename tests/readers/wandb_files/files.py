"""Writes `.wandb` files, independently of `runvitals.readers.wandb_files.encoding`."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runvitals.base.protobuf import text, uint
from runvitals.readers.wandb_files.transaction_log import BLOCK_BYTES, HEAD

T0_S = 1_700_000_000


def log(*payloads: bytes) -> bytes:
    """The content of a file with these records."""
    data = bytearray(HEAD)
    for payload in payloads:
        at = 0
        while True:
            room = BLOCK_BYTES - len(data) % BLOCK_BYTES
            if room < 7:
                data += bytes(room)
                continue
            piece = payload[at : at + room - 7]
            first, last = at == 0, at + len(piece) == len(payload)
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, last]
            data += chunk(kind, piece)
            at += len(piece)
            if last:
                break
    return bytes(data)


def chunk(kind: int, piece: bytes) -> bytes:
    body = bytes((kind,)) + piece
    return struct.pack("<IH", zlib.crc32(body), len(piece)) + body


def items(number: int, values: Mapping[str, Any]) -> bytes:
    """Entries as key and JSON; names with a bar become paths."""
    encoded = b""
    for key, value in values.items():
        path = key.split("|")
        name = text(1, key) if len(path) == 1 else b"".join(text(2, part) for part in path)
        encoded += text(number, name + text(16, json.dumps(value)))
    return encoded


def timestamp(number: int, seconds: float) -> bytes:
    return text(number, uint(1, int(seconds)) + uint(2, round(seconds % 1 * 1e9)))


def started(run: str = "abc", host: str = "node1", **config: Any) -> bytes:
    return text(
        17,
        text(1, run) + text(3, "vision") + text(4, items(1, config)) + text(8, "first try") + text(10, "a")
        + text(13, host) + timestamp(17, T0_S),
    )  # fmt: skip


def stats(second: float, **values: Any) -> bytes:
    named = {key.replace("__", "."): value for key, value in values.items()}
    return text(7, timestamp(2, T0_S + second) + items(3, named))


def row(step: int, second: float, values: Mapping[str, Any]) -> bytes:
    return text(2, items(1, {**values, "_timestamp": T0_S + second, "_step": step}) + text(2, uint(1, step)))


def printed(second: float, line: str, error: bool = False) -> bytes:
    return text(13, uint(1, 0 if error else 1) + timestamp(2, T0_S + second) + text(3, line))


def ended(code: int, runtime_s: int) -> bytes:
    return text(18, uint(1, code) + uint(2, runtime_s))


def write(path: Path, *payloads: bytes) -> str:
    path.write_bytes(log(*payloads))
    return str(path)
