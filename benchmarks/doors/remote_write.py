"""Prometheus remote write 1.0, beside VictoriaMetrics.

Each client is a Prometheus that scrapes 8 hosts of 500 series: its requests have 2000 samples, one of each
series, with the labels that such series have; a tenth of the values is zero. Real snappy compression.
"""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Iterator

import cramjam
import numpy as np

from benchmarks.doors.peer import Door, Peer
from benchmarks.ingest import server, victoria
from runvitals.base.protobuf import text, uint
from runvitals.model.durations import DAY_MS

HOSTS, SERIES, SAMPLES = 8, 500, 2000
_WALKS = 20
_POST = (
    b"POST /api/v1/write HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
    b"content-encoding: snappy\r\nx-prometheus-remote-write-version: 0.1.0\r\n"
)


def door() -> Door:
    peers = [Peer("runvitals", server.serving, requests)]
    if shutil.which(victoria.PROGRAM):
        peers.append(Peer("VictoriaMetrics", victoria.serving, requests))
    return Door("remote_write", "sample", SAMPLES, (1, 4, 16), peers)


def requests(client: int) -> Iterator[bytes]:
    """The requests of a client, 10 s of its hosts each second request."""
    labels = [_labels(client, number) for number in range(HOSTS * SERIES)]
    rng = np.random.default_rng(client)
    walks = np.cumsum(rng.integers(-10, 11, (_WALKS, len(labels))), axis=0) / 10
    walks[:, ::10] = 0.0
    started_ms = time.time_ns() // 1_000_000 - DAY_MS
    tick = 0
    while True:
        packed = walks[tick % _WALKS].astype("<f8").tobytes()
        values = struct.unpack(f"<{len(labels)}d", packed)
        stamp = uint(2, started_ms + 10_000 * tick)
        usual, zero = b"\x12\x10\x09", text(2, stamp)
        for first in range(0, len(labels), SAMPLES):
            yield _request(
                b"".join(
                    text(
                        1,
                        labels[series]
                        + (usual + packed[8 * series : 8 * series + 8] + stamp if values[series] else zero),
                    )
                    for series in range(first, first + SAMPLES)
                )
            )
        tick += 1


def _request(message: bytes) -> bytes:
    body = bytes(cramjam.snappy.compress_raw(message))
    return _POST + b"content-length: %d\r\n\r\n" % len(body) + body


def _labels(client: int, number: int) -> bytes:
    host, series = divmod(number, SERIES)
    labels = {
        "__name__": f"application_requests_{series % 50}_seconds",
        "cluster": "training",
        "instance": f"node-{client}-{host}.cluster.example.org:9100",
        "job": "application",
        "namespace": "research",
        "pod": f"worker-{client}-{host}-7d9f8b6c5d",
        "shard": f"{series // 50}",
    }
    return b"".join(text(1, text(1, name) + text(2, value)) for name, value in labels.items())
