"""runvitals, with the requests of a relay: MessagePack, in which the server's number stands for the keys from
the second request on, and bodies are compressed as a relay does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import msgspec

from benchmarks.ingest.samples import KEYS, samples
from runvitals.relay.destinations.runvitals.compression import BodyCompressor
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import open_metadata_store

_POST = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/msgpack\r\n"
_CATALOGUE = "catalogue.db"
_SCHEMA = 1
"""The number that a new server gives to its first list of keys, of which there is only one here. With another
one, all requests would be counted as rejected.
"""


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


class WithAccounts:
    """A server with accounts, to which a service account of a team sends the runs."""

    @cached_property
    def _store(self) -> tuple[bytes, bytes]:
        """The file of a metadata store with accounts, and the secret of the service account's key."""
        now_ms = time.time_ns() // 1_000_000
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, _CATALOGUE)
            with open_metadata_store(path) as metadata_store:
                accounts = metadata_store.accounts
                ada = accounts.users.create("ada", CLI, now_ms, org_role="admin")
                team = accounts.teams.create("vision", CLI, now_ms, administrator=ada.id)
                account = accounts.service_accounts.create("cluster", team.id, CLI, now_ms)
                secret, _ = accounts.keys.create("cluster", CLI, now_ms, service_account_id=account.id)
            with open(path, "rb") as file:
                return file.read(), secret.encode("ascii")

    @contextmanager
    def serving(self, folder: str) -> Iterator[tuple[int, int]]:
        """Run a server. Yields its pid and port."""
        with open(os.path.join(folder, _CATALOGUE), "wb") as file:
            file.write(self._store[0])
        with serving(folder) as server:
            yield server

    def requests(self, client: int, ticks: int) -> Iterator[bytes]:
        """The requests of a client, which name the team."""
        key = b"authorization: Bearer " + self._store[1] + b"\r\n"
        return requests(client, ticks, key, {"entity": "vision"})


def requests(
    client: int, ticks: int, headers: bytes = b"", fields: dict[str, Any] | None = None
) -> Iterator[bytes]:
    """The requests of a client.

    Args:
        headers: further headers.
        fields: further fields of the envelopes.
    """
    compressor = BodyCompressor()
    fields = fields or {}
    for seq, (t, values) in enumerate(samples(client, ticks)):
        envelope = {
            "run": f"bench-{client}",
            "writer": f"monitor.node{client}.1",
            "seq": seq,
            **({"schema": _SCHEMA} if seq else {"keys": KEYS}),
            "body": compressor.body(t.tobytes(), [column.tobytes() for column in values.T]),
            **fields,
        }
        content = msgspec.msgpack.encode(envelope)
        yield _POST + headers + b"content-length: %d\r\n\r\n" % len(content) + content
