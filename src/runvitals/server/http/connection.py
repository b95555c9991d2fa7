"""One HTTP connection: uvicorn's, with bounds on what a client may make this process keep and wait for.

They hold before anything is known of who sends: a head of so many bytes and fields and no more, so many
requests ahead of their answers, and a time for each part of a request to arrive and for an answer to be read.
Sizes of bodies are a matter of what a request is for, and are looked at by the application.

This builds on internals of uvicorn, which may change in any of its releases. What it uses:

- `HttpToolsProtocol`: attributes access_log, access_logger, app, client, connections, cycle,
  expect_100_continue, flow, headers, logger, loop, parser, pipeline, scope, server_state, transport; methods
  connection_lost, connection_made, data_received, on_body, on_header, on_headers_complete, on_message_begin,
  on_message_complete, on_response_complete, _start_asgi_task; `url` from `on_url`
- `RequestResponseCycle`: its constructor's arguments; body, disconnected, keep_alive, message_event,
  more_body, response_complete, response_started, scope
- `FlowControl`: resume_reading, write_paused
- `ServerState`: connections, default_headers, total_requests
- `Server`: handle_exit, on_tick, server_state (in `serve`)

`tests/server/test_uvicorn.py` fails where one of them is missing.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, cast

import httptools
import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

_KIB = 1 << 10
_PIECE_BYTES = 16 * _KIB
"""Bytes are parsed in pieces of at most this size, with a look at the bounds after each."""
_SMALL_HEAD_BYTES = 4 * _KIB
"""Heads that have come so far are not counted together: ten thousand of them are 40 MiB."""
_SHORT_BODY_BYTES = 64 * _KIB
_ENDED_AT_ONCE = 64
_READ_BYTES = 16 * _KIB
"""A client reads an answer that waits for it at least so far within the time it has, and again."""
_DROPPED_BYTES = 64 * _KIB * _KIB
"""What is read and dropped after a refusal, so that a client that is still sending gets to see it."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection, and all together, may ask for.

    Args:
        connections: as many may be open at once; the next is answered 503.
        head_bytes: of a request line and its header fields, and of trailers: beyond it 414 or 431.
        fields: of a head.
        silent_s: where there is no room for another, those that asked for nothing for so long make some.
        heads_bytes: of all heads that are not complete yet, of those larger than a few KiB.
        pipelined: requests that are sent before the one before them was answered.
        head_s: for a head to arrive, from the connection's or its own beginning.
        body_s: for a body to arrive, from the end of the head, whatever the request is for.
        idle_s: between two requests. Longer than clients that send every minute pause: a new connection
            costs both sides more than a request.
        unread_s: for a client that reads nothing of what waits for it.
        refused_s: for a client to stop sending after it was refused.
    """

    connections: int = 10_000
    head_bytes: int = 64 * _KIB
    fields: int = 128
    silent_s: float = 2.0
    heads_bytes: int = 32 * _KIB * _KIB
    pipelined: int = 32
    head_s: float = 30.0
    body_s: float = 30.0
    idle_s: float = 75.0
    unread_s: float = 30.0
    refused_s: float = 5.0


Headers = list[tuple[bytes, bytes]]


class FastPath(Protocol):
    """Answers requests to one path without the application, those that it can."""

    path: bytes

    def admits(self, headers: Headers) -> bool:
        """Whether a request is let in, as far as that is known without asking anybody."""

    def post(self, headers: Headers, body: bytes, done: Callable[[bytes | None], None]) -> bool:
        """Take a request in: whether `done` is going to be called, with the JSON to answer 200 with.

        It gets None, and False is the answer, where the application is to be asked instead.
        """


class ConnectionConfig(uvicorn.Config):
    """What connections of one server share.

    Args:
        refused: called for each rejected connection: the client's address, the status, the reason.
        fast_path: takes in what the application need not be asked about.
    """

    def __init__(
        self,
        app: Any,
        bounds: ConnectionLimits,
        refused: Callable[[str, int, str], None],
        fast_path: FastPath | None,
        **how: Any,
    ) -> None:
        super().__init__(app, http=Connection, **how)
        self.bounds = bounds
        self.refused = refused
        self.fast_path = fast_path
        self.heads_bytes = 0


class _NoEvent:
    """Who waits for nothing: in the place of the event that a request's task waits for."""

    def set(self) -> None:
        pass


class _ShortRequest:
    """A request with a short body, of which no task exists: the part of uvicorn's cycle that is looked at."""

    __slots__ = ("body", "disconnected", "keep_alive", "more_body", "response_complete", "scope")
    response_started = False
    message_event = _NoEvent()

    def __init__(self, scope: Any, keep_alive: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.body = b""
        self.more_body = True
        self.response_complete = self.disconnected = False


class _Refused(Exception):
    """A request that is not read on, with the status and text to answer."""


class Connection(HttpToolsProtocol):
    """See the module."""

    def __init__(
        self,
        config: ConnectionConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._shared = config
        self._fast_path = config.fast_path
        self._length = 0
        self._bounds = config.bounds
        self._requests = 0
        self._in_head = True
        self._moved = False
        self._unaccounted = 0  # bytes since a head began or ended, or a piece of a body came
        self._held = 0
        self._refusal: tuple[int, str] | None = None
        self._deaf = self._refused = False
        self._dropped = 0
        self._doing: tuple[str, int] = ("head", 0)
        self._opened_s = self._since_s = self.loop.time()

    # What comes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._bounds.connections and not self._make_room():
            self._refuse(503, f"{self._bounds.connections} connections are already open: try again later")

    def _make_room(self) -> bool:
        """End some connections that were opened a while ago and never asked for anything."""
        before_s = self.loop.time() - self._bounds.silent_s
        others = cast(set[Connection], self.connections)
        silent = (
            one for one in others if one is not self and one.cycle is None and one._opened_s <= before_s
        )
        found = list(itertools.islice(silent, _ENDED_AT_ONCE))
        for one in found:
            one.transport.abort()
        return bool(found)

    def connection_lost(self, exc: Exception | None) -> None:
        self._hold(0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if len(data) <= _PIECE_BYTES:
            self._receive(data)
            return
        view = memoryview(data)
        for start in range(0, len(view), _PIECE_BYTES):
            self._receive(view[start : start + _PIECE_BYTES])

    def _receive(self, piece: bytes | memoryview) -> None:
        if self._deaf:
            self._drop(len(piece))
            return
        self._moved = False
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._finish_after(self.cycle)  # it is answered as if it had not asked for another protocol
            return
        except httptools.HttpParserError as error:
            self._refuse(*(self._refusal or (400, f"not a valid HTTP request: {error}")))
            return
        if self._moved:
            self._unaccounted = 0
            return
        self._unaccounted += len(piece)
        if self._unaccounted > self._bounds.head_bytes - _PIECE_BYTES:
            self._refuse(*self._too_long())
        elif self._in_head and self._unaccounted > _SMALL_HEAD_BYTES:
            self._hold(self._unaccounted)
            if self._shared.heads_bytes > self._bounds.heads_bytes:
                self._refuse(503, "too many long requests arrive at once: try again later")

    def _too_long(self) -> tuple[int, str]:
        most = self._bounds.head_bytes
        if self._in_head and not self.headers and len(getattr(self, "url", b"")) > self._unaccounted // 2:
            return 414, f"the request target is longer than the limit of {most} bytes"
        return 431, f"the header fields are longer than the limit of {most} bytes"

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._length = 0
        self._moved = self._in_head = True
        self._requests += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # trailers are ignored
        if len(self.headers) >= self._bounds.fields:
            self._stop(431, f"more header fields than the limit of {self._bounds.fields}")
        super().on_header(name, value)
        if len(name) == 14 and self.headers[-1][0] == b"content-length":
            self._length = int(value) if value.isdigit() else 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._moved = True
        self._hold(0)
        if len(self.pipeline) >= self._bounds.pipelined:
            self._stop(
                400, f"more than {self._bounds.pipelined} requests were sent before the first was answered"
            )
        fast_path, cycle = self._fast_path, self.cycle
        if (
            fast_path is not None
            and self.url == fast_path.path
            and 0 < self._length <= _SHORT_BODY_BYTES
            and (cycle is None or cycle.response_complete)
            and not self.expect_100_continue
            and self.parser.get_method() == b"POST"
            and fast_path.admits(self.headers)
        ):
            keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
            self.cycle = _ShortRequest(self.scope, keep_alive)  # type: ignore[assignment]
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._moved = True
        cycle: Any = self.cycle
        if cycle.response_complete:
            self._drop(len(body))
        elif type(cycle) is _ShortRequest:
            cycle.body = cycle.body + body if cycle.body else body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        cycle: Any = self.cycle
        if type(cycle) is _ShortRequest:
            cycle.more_body = False
            assert self._fast_path is not None
            if not self._fast_path.post(cycle.scope["headers"], cycle.body, partial(self._taken, cycle)):
                self._ask_application(cycle)
            return
        if cycle.response_complete:
            cycle.more_body = False
        super().on_message_complete()

    def _taken(self, cycle: _ShortRequest, answer: bytes | None) -> None:
        """A short request was taken in, or is to be answered by the application."""
        if cycle.disconnected or self.transport.is_closing():
            return
        if answer is None:
            self._ask_application(cycle)
            return
        cycle.response_complete = True
        end = b"\r\n\r\n" if cycle.keep_alive else b"\r\nconnection: close\r\n\r\n"
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d%b%b"
            % (len(answer), end, answer)
        )
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _ask_application(self, short: _ShortRequest) -> None:
        assert self._fast_path is not None
        path = self._fast_path.path
        short.scope |= {"method": "POST", "path": path.decode("ascii"), "raw_path": path, "query_string": b""}
        cycle = RequestResponseCycle(
            scope=short.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=short.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.body += short.body
        cycle.more_body = False
        cycle.message_event.set()
        if self.cycle is short:  # type: ignore[comparison-overlap]
            self.cycle = cycle
        self._start_asgi_task(cycle, self.app)

    def on_response_complete(self) -> None:
        # As uvicorn does, but for a timer for each pause between two requests: `look` looks after all.
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    # Refusing

    def _stop(self, status: int, text: str) -> None:
        """Have the parser end: `_receive` refuses."""
        self._refusal = (status, text)
        raise _Refused(text)

    def _refuse(self, status: int, text: str) -> None:
        """Read no more requests; tell why, where no other answer is under way."""
        self._hold(0)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self._in_head or self.pipeline:
                self._finish_after(cycle)
                return
            if cycle.response_started:
                self.transport.abort()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self._deaf = self._refused = True
        client = self.client[0] if self.client else "-"
        self._shared.refused(client, status, text)
        if self.transport.is_closing():
            return
        body = msgspec.json.encode({"error": text})
        phrase = HTTPStatus(status).phrase
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
            b"\r\n%b" % (status, phrase.encode("ascii"), len(body), body)
        )
        # Closed while bytes wait to be read, the answer would be lost with them.
        self.transport.write_eof()
        self.flow.resume_reading()

    def _finish_after(self, cycle: Any) -> None:
        """Answer what was asked so far, and read no more."""
        self._deaf = True
        cycle.keep_alive = False

    def _drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > _DROPPED_BYTES:
            self.transport.abort()

    def _hold(self, size: int) -> None:
        """Of the bytes that all incomplete heads may have, so many are this connection's."""
        self._shared.heads_bytes += size - self._held
        self._held = size

    # Time

    def look(self, now_s: float) -> None:
        """End the connection where it takes too long for what it does.

        Called about once a second for all connections: timers for each request would cost more than the rest
        of this class.
        """
        doing, limit_s = self._now_doing()
        if doing != self._doing:
            self._doing, self._since_s = doing, now_s
        elif now_s - self._since_s > limit_s:
            if doing[0] == "body":
                self._refuse(408, f"the body did not arrive within {limit_s:g} s")
            elif doing[0] in ("idle", "head"):
                self.transport.close()
            else:
                self.transport.abort()

    def _now_doing(self) -> tuple[tuple[str, int], float]:
        """What is waited for, with a number that tells it from the next of its kind, and for how long."""
        bounds, cycle = self._bounds, self.cycle
        if self.flow.write_paused:
            return ("unread", self.transport.get_write_buffer_size() // _READ_BYTES), bounds.unread_s
        if self._refused:
            return ("refused", self._requests), bounds.refused_s
        if cycle is not None and not cycle.response_complete:
            if cycle.more_body and not self.pipeline and not self._deaf:
                return ("body", self._requests), bounds.body_s
            return ("working", self._requests), float("inf")
        if cycle is not None and cycle.more_body:  # it was answered without that
            return ("refused", self._requests), bounds.refused_s
        if cycle is None or self._unaccounted:
            return ("head", self._requests), bounds.head_s
        return ("idle", self._requests), bounds.idle_s


def check_timeouts(connections: set[Any], now_s: float) -> None:
    """`Connection.look` at each."""
    for connection in list(connections):
        cast(Connection, connection).look(now_s)
