"""runvitals, with the requests of a relay: MessagePack with a body that is packed with zstd."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from benchmarks.ingest.samples import KEYS, samples
from runvitals.model import batch_body

_POST = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/msgpack\r\n"


@contextmanager
def serving(folder: str) -> Iterator[tuple[int, int]]:
    """Run a server. Yields its pid and port."""
    command = [sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0", "--store", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[1]
        yield process.pid, int(address.rstrip("/").rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


def requests(client: int, ticks: int) -> Iterator[bytes]:
    """The requests of a client."""
    for seq, (t, values) in enumerate(samples(client, ticks)):
        envelope = {
            "run": f"bench-{client}",
            "writer": f"monitor.node{client}.1",
            "seq": seq,
            "keys": KEYS,
            "body": batch_body.pack(t, values),
        }
        content = msgspec.msgpack.encode(envelope)
        yield _POST + b"content-length: %d\r\n\r\n" % len(content) + content
