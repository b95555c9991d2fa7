"""The peer: VictoriaMetrics, from Debian's package, and what Prometheus' agents send to it: remote write.

That is Protocol Buffers in a snappy block. Ours is one literal, which the format allows: the server has less
to unpack than with real compression. Its acknowledgement is not durable: what came in the last
seconds is lost when it is killed.
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
from runvitals.buckets import Integers

PROGRAM = "victoria-metrics"
_POST = (
    b"POST /api/v1/write HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
    b"content-encoding: snappy\r\nx-prometheus-remote-write-version: 0.1.0\r\n"
)
_TIME_BYTES = 6
"""Of a time in ms UTC, from 2004 to 2109."""

Places = NDArray[np.int64]


@contextmanager
def serving(folder: str) -> Iterator[tuple[int, int]]:
    """The server's pid and port."""
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
    raise OSError(f"{PROGRAM} does not answer")


def requests(client: int, ticks: int) -> Iterator[bytes]:
    """What one client sends: a series for each key, all with the same times.

    A request is the one before with other numbers in the same places, or making it would take longer than
    taking it in.
    """
    form, values_at, times_at = _form(client, ticks)
    made = np.frombuffer(form, np.uint8).copy()
    for t, values in samples(client, ticks):
        made[values_at] = np.ascontiguousarray(values.T).view(np.uint8).reshape(-1, 8)
        made[times_at] = np.tile(_varints(t), (len(KEYS), 1))
        yield made.tobytes()


def _form(client: int, ticks: int) -> tuple[bytes, Places, Places]:
    """A request, and where its values and its times lie."""
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
    """Times as Protocol Buffers have them: seven bits a byte, the lowest first."""
    sevens = t[:, None] >> (7 * np.arange(_TIME_BYTES)) & 0x7F
    sevens[:, :-1] |= 0x80
    return sevens.astype(np.uint8)


def _label(name: str, value: str) -> bytes:
    return _field(1, _field(1, name.encode()) + _field(2, value.encode()))


def _field(number: int, content: bytes) -> bytes:
    """A field of Protocol Buffers that holds bytes, a text or a message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)
