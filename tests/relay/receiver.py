"""The real ingest endpoint on a real socket, which tests can make fail."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import zstandard
from starlette.types import Receive, Scope, Send

from runvitals.model.filter import Filter
from runvitals.server.events.outbox import Notification
from runvitals.server.events.outbox import add as add_notification
from runvitals.server.http.body_limits import Limits
from runvitals.server.ingest.endpoint import IngestEndpoint
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store

END_OF_TIME_MS = 1 << 50


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class RejectionStatistics:
    """Records the statuses of rejected requests."""

    def __init__(self) -> None:
        self.rejections: list[int] = []

    def count_ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        pass

    def count_rejected(self, status: int) -> None:
        self.rejections.append(status)


class Receiver:
    """A server that accepts envelopes.

    Attributes:
        ahead_ms: how far its clock is ahead of ours.
        required_token: the token that requests must have; "": none.
        faults: responses to the next requests, (status, Retry-After). With 599 the request is processed, and
            its response is lost.
        requests: the envelopes of each request received.
        headers: the headers of each request received.
    """

    def __init__(self, folder: str, port: int = 0, listener: socket.socket | None = None) -> None:
        os.makedirs(folder, exist_ok=True)
        self.store = SqliteChunks(folder)
        self.metadata_store = new_metadata_store(Path(folder, "catalogue.db"))
        self.ahead_ms = 0
        self.recorder = Recorder(self.store, self.metadata_store, self.now_ms, Limits())
        self.statistics = RejectionStatistics()
        self.endpoint = IngestEndpoint(self.recorder, Limits(), self.statistics)
        self.required_token = ""
        self.faults: deque[tuple[int, str]] = deque()
        self.requests: list[list[dict[str, Any]]] = []
        self.headers: list[dict[bytes, bytes]] = []
        self._closed = False
        self.tokens: list[str] = []
        listener = listener or socket.create_server(("127.0.0.1", port))
        address, self.port = listener.getsockname()
        self.url = f"http://{address}:{self.port}"
        config = uvicorn.Config(
            self._answer, interface="asgi3", lifespan="off", ws="none", http="h11", log_level="error"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the server and its stores; may be called twice."""
        if self._closed:
            return
        self._closed = True
        self._server.should_exit = True
        self._thread.join()
        self.recorder.close()
        self.metadata_store.close()
        self.store.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        authorization = dict(scope["headers"]).get(b"authorization", b"").decode()
        self.tokens.append(authorization)
        if self.required_token and authorization != f"Bearer {self.required_token}":
            await _respond(send, 401, b'{"error": "a token is needed"}')
            return
        if scope["path"] == "/api/v1/about":
            await _respond(send, 200, b'{"version": "0", "kind": "server", "capabilities": []}')
            return
        self._record(dict(scope["headers"]), body)
        status, after = self.faults.popleft() if self.faults else (0, "")
        if status in (0, 599):
            passed = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def receive_again() -> Any:
                return next(passed)

            await self.endpoint(scope, receive_again, send if status == 0 else _nothing)
        if status:
            headers = [(b"retry-after", after.encode())] if after else []
            await _respond(send, status, b'{"error": "a fault of the test"}', headers)

    def _record(self, headers: dict[bytes, bytes], body: bytes) -> None:
        self.headers.append(headers)
        if headers[b"content-encoding"] == b"zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        value = msgspec.msgpack.decode(body)
        self.requests.append(value if isinstance(value, list) else [value])

    def now_ms(self) -> int:
        """The time by this server's clock."""
        return now_ms() + self.ahead_ms

    def request_stop(self, uid: str) -> None:
        """Request that a run stop, as a user does on the page."""
        self.metadata_store.runs.request_stop(self.run(uid).id, self.now_ms())
        self.recorder.heartbeats.flush()

    def request_command(self, uid: str, name: str) -> None:
        """Request a command that a host registered, as an automation does."""
        target = f"command:{self.run(uid).id}"
        notification = Notification(
            "k", "run.state", target, "run", "", {"command": name, "allowed": True}, 1
        )
        self.metadata_store.write(lambda connection: add_notification(connection, notification))
        self.recorder.heartbeats.flush()

    # -- what it has received and stored

    def received(self) -> list[tuple[str, int]]:
        """(writer, seq) of every envelope received, in order."""
        return [
            (envelope["writer"], envelope["seq"])
            for request in self.requests
            for envelope in request
            if "seq" in envelope
        ]

    def run(self, uid: str) -> RunRow:
        run = self.metadata_store.runs.find(uid, self.now_ms())
        assert run is not None, f"the server has no run {uid}, it has {self.runs()}"
        return run

    def runs(self) -> int:
        return self.metadata_store.runs.count(Filter(), now_ms())

    def samples(self) -> dict[str, list[tuple[int, float]]]:
        """All stored values, by key."""
        series = self.store.read(self.store.active_runs(0), None, 0, END_OF_TIME_MS).series
        keys = self.metadata_store.metrics.keys(item.metric for item in series)
        return {
            keys[item.metric]: list(zip(item.t.tolist(), item.values.tolist(), strict=True))
            for item in series
        }


async def _respond(
    send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers or []})
    await send({"type": "http.response.body", "body": body})


async def _nothing(message: Any) -> None:
    pass
