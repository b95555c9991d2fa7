"""For comparison: VictoriaMetrics from Debian's package, with Prometheus remote write.

Remote write is Protocol Buffers in a snappy block. These blocks are a single literal, which is valid and
cheaper to decompress than real compression. Its acknowledgement is not durable: samples of the last seconds
are lost if it is killed.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from benchmarks.ingest.samples import KEYS, samples
from runvitals.base.buckets import Integers

PROGRAM = "victoria-metrics"
_POST = (
    b"POST /api/v1/write HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
    b"content-encoding: snappy\r\nx-prometheus-remote-write-version: 0.1.0\r\n"
)
_TIME_BYTES = 6
"""Length of a time in ms UTC as varint, from 2004 to 2109."""

Offsets = NDArray[np.int64]


@contextmanager
def serving(folder: str) -> Iterator[tuple[int, int]]:
    """Run a server. Yields its pid and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [PROGRAM, f"-storageDataPath={folder}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=100y"],
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise OSError(f"{PROGRAM} does not accept connections")


def requests(client: int, ticks: int) -> Iterator[bytes]:
    """The requests of a client: a series for each key, all with the same times.

    Values and times are replaced in a template, because encoding each request would take longer than
    ingesting it.
    """
    template, values_at, times_at = _template(client, ticks)
    request = np.frombuffer(template, np.uint8).copy()
    for t, values in samples(client, ticks):
        request[values_at] = np.ascontiguousarray(values.T).view(np.uint8).reshape(-1, 8)
        request[times_at] = np.tile(_varints(t), (len(KEYS), 1))
        yield request.tobytes()


def _template(client: int, ticks: int) -> tuple[bytes, Offsets, Offsets]:
    """A request, and the offsets of its values and times."""
    value, time_ms = b"\x09" + bytes(8), b"\x10" + bytes(_TIME_BYTES)
    sample = _field(2, value + time_ms)
    content = bytearray()
    ends = []
    for key in KEYS:
        labels = _label("__name__", key.replace(".", "_")) + _label("run", f"bench-{client}")
        content += _field(1, labels + sample * ticks)
        ends.append(len(content))
    block = _varint(len(content)) + b"\xf4" + struct.pack("<H", len(content) - 1) + content
    head = _POST + b"content-length: %d\r\n\r\n" % len(block)
    before = len(head) + len(block) - len(content)
    starts = np.array(ends)[:, None] + before - np.arange(ticks, 0, -1) * len(sample)
    values_at = starts.reshape(-1, 1) + len(sample) - len(value) - len(time_ms) + 1 + np.arange(8)
    times_at = starts.reshape(-1, 1) + len(sample) - _TIME_BYTES + np.arange(_TIME_BYTES)
    return head + block, values_at, times_at


def _varints(t: Integers) -> NDArray[np.uint8]:
    """Times as varints of Protocol Buffers: seven bits per byte, lowest first."""
    sevens = t[:, None] >> (7 * np.arange(_TIME_BYTES)) & 0x7F
    sevens[:, :-1] |= 0x80
    return sevens.astype(np.uint8)


def _label(name: str, value: str) -> bytes:
    return _field(1, _field(1, name.encode()) + _field(2, value.encode()))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of Protocol Buffers: bytes, a string or a message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
