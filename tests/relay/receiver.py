"""The real ingest endpoint behind a real socket, and a hand that can make it fail."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from typing import Any

import msgspec
import uvicorn
import zstandard
from starlette.types import Receive, Scope, Send

from runvitals.server.ingest.endpoint import IngestEndpoint
from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.recorder import Recorder
from runvitals.store.metadata import Filter, RunRow, open_metadata_store
from runvitals.store.samples.sqlite_chunks import SqliteChunks

FOR_EVER_MS = 1 << 50


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Counted:
    """A tally of what the endpoint says."""

    def __init__(self) -> None:
        self.refusals: list[int] = []

    def ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        pass

    def rejected(self, status: int) -> None:
        self.refusals.append(status)


class Receiver:
    """A server that takes envelopes in.

    Attributes:
        ahead_ms: how far its clock is ahead of ours.
        wanted: the token that must be shown; "": none need be.
        faults: what the next requests get instead of their answer: (status, Retry-After). 599: the request is
            taken in, and the answer lost.
        requests: the envelopes of each request that reached us.
    """

    def __init__(self, folder: str, port: int = 0, door: socket.socket | None = None) -> None:
        os.makedirs(folder, exist_ok=True)
        self.store = SqliteChunks(folder)
        self.catalogue = open_metadata_store(f"{folder}/catalogue.db")
        self.ahead_ms = 0
        self.recorder = Recorder(self.store, self.catalogue, self.now_ms, Limits())
        self.tally = Counted()
        self.endpoint = IngestEndpoint(self.recorder, Limits(), self.tally)
        self.wanted = ""
        self.faults: deque[tuple[int, str]] = deque()
        self.requests: list[list[dict[str, Any]]] = []
        self._closed = False
        self.tokens: list[str] = []
        door = door or socket.create_server(("127.0.0.1", port))
        address, self.port = door.getsockname()
        self.url = f"http://{address}:{self.port}"
        config = uvicorn.Config(
            self._answer, interface="asgi3", lifespan="off", ws="none", http="h11", log_level="error"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [door]}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Twice does no harm."""
        if self._closed:
            return
        self._closed = True
        self._server.should_exit = True
        self._thread.join()
        self.recorder.close()
        self.catalogue.close()
        self.store.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        shown = dict(scope["headers"]).get(b"authorization", b"").decode()
        self.tokens.append(shown)
        if self.wanted and shown != f"Bearer {self.wanted}":
            await _say(send, 401, b'{"error": "a token is needed"}')
            return
        if scope["path"] == "/api/v1/about":
            await _say(send, 200, b'{"version": "0", "kind": "server", "capabilities": []}')
            return
        self._note(dict(scope["headers"]), body)
        status, after = self.faults.popleft() if self.faults else (0, "")
        if status in (0, 599):
            passed = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def again() -> Any:
                return next(passed)

            await self.endpoint(scope, again, send if status == 0 else _nothing)
        if status:
            headers = [(b"retry-after", after.encode())] if after else []
            await _say(send, status, b'{"error": "as the test wants it"}', headers)

    def _note(self, headers: dict[bytes, bytes], body: bytes) -> None:
        if headers[b"content-encoding"] == b"zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        value = msgspec.msgpack.decode(body)
        self.requests.append(value if isinstance(value, list) else [value])

    def now_ms(self) -> int:
        """What time it is for this server."""
        return now_ms() + self.ahead_ms

    def stop(self, uid: str) -> None:
        """A person asks for a run's end."""
        self.catalogue.runs.request_stop(self.run(uid).id, self.now_ms())
        self.recorder.presence.flush()

    # -- what it holds

    def sent(self) -> list[tuple[str, int]]:
        """(writer, seq) of every envelope that came, in order."""
        return [(one["writer"], one["seq"]) for request in self.requests for one in request if "seq" in one]

    def run(self, uid: str) -> RunRow:
        run = self.catalogue.runs.find(uid, self.now_ms())
        assert run is not None, f"the server has no run {uid}, it has {self.runs()}"
        return run

    def runs(self) -> int:
        return self.catalogue.runs.count(Filter(), now_ms())

    def samples(self) -> dict[str, list[tuple[int, float]]]:
        """Everything that is stored, by key."""
        series = self.store.read(self.store.active_runs(0), None, 0, FOR_EVER_MS).series
        keys = self.catalogue.metrics.keys(one.metric for one in series)
        return {
            keys[one.metric]: list(zip(one.t.tolist(), one.values.tolist(), strict=True)) for one in series
        }


async def _say(
    send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers or []})
    await send({"type": "http.response.body", "body": body})


async def _nothing(message: Any) -> None:
    pass
