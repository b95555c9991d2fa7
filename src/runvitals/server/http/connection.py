"""uvicorn's HTTP connection with limits on memory and time.

The limits apply before the client is known: bytes and fields of a request head, pipelined requests, and a
time for each part of a request to arrive and for a response to be read. The application limits the size of
bodies, because that depends on the route.

This class relies on internals of uvicorn, which may change in any release, so pyproject.toml names the
releases that were tried:

- `HttpToolsProtocol`: attributes access_log, access_logger, app, app_state, client, connections, cycle,
  expect_100_continue, flow, headers, logger, loop, parser, pipeline, scope, server_state, transport; methods
  connection_lost, connection_made, data_received, on_body, on_header, on_headers_complete, on_message_begin,
  on_message_complete, on_response_complete, _start_asgi_task; `url` from `on_url`
- `RequestResponseCycle`: its constructor's arguments; body, disconnected, keep_alive, message_event,
  more_body, response_complete, response_started, scope
- `FlowControl`: resume_reading, write_paused
- `ServerState`: connections, default_headers, total_requests
- `Server`: handle_exit, on_tick, server_state (in `serve`)

`tests/server/http/test_uvicorn.py` fails if one of them is missing. The limits need them, and short requests,
of which `fast_path` tells what they gain.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar, cast

import httptools
import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from runvitals.server.http.buffered_body import HAS_LEFT
from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.http.fast_path import FastPath, ParsedHeads, ShortRequest
from runvitals.server.http.request_id import HEADER, new_request_id

_REQUEST_ID = HEADER.encode("ascii")
_KIB = 1 << 10
_PIECE_BYTES = 16 * _KIB
"""Input is parsed in pieces of at most this size, and the limits are checked after each."""
_SMALL_HEAD_BYTES = 4 * _KIB
"""Incomplete heads up to this size do not count towards `heads_bytes`: ten thousand of them are 40 MiB."""
_SHORT_BODY_BYTES = 64 * _KIB
_ENDED_TOGETHER = 64
_READ_BYTES = 16 * _KIB
"""A client must read at least this much of a waiting response within `unread_s`."""
_STEP_BYTES = 256 * _KIB
"""A client must send at least this much of a body within `body_s`: a file may take longer as a whole."""
_ONCE = {len(name): name for name in (b"host", b"authorization")}
"""Fields by their length. Of two, a proxy may believe one and this server the other."""
_MAX_DISCARDED_BYTES = 64 * _KIB * _KIB
"""How much input is read and discarded after a rejection, so that a client that is still sending can read the
error response.
"""

Port = TypeVar("Port", int, int | None)


class ConnectionConfig(uvicorn.Config):
    """The configuration that all connections of a server share.

    Args:
        rejected: called for each rejected connection with the client's address, the status and the reason.
        fast_path: answers some requests without the application.
    """

    def __init__(
        self,
        app: Any,
        limits: ConnectionLimits,
        rejected: Callable[[str, int, str], None],
        fast_path: FastPath | None,
        **how: Any,
    ) -> None:
        super().__init__(app, http=Connection, **how)
        self.limits = limits
        self.rejected = rejected
        self.fast_path = fast_path
        self.parsed_heads = ParsedHeads()
        self.heads_bytes = 0


class _RequestRejected(Exception):
    """Stops the parser. `Connection._rejection` has the status and text of the response."""


class Connection(HttpToolsProtocol):
    """A connection with `ConnectionLimits`; see the module."""

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
        self._length = self._body_left = self._step_bytes = 0
        self._limits = config.limits
        self._steps = 0  # requests, and parts of `_STEP_BYTES` of their bodies
        self._in_head = True
        self._in_message = False
        self._progressed = False
        self._unaccounted = 0  # bytes since a head began or ended, or part of a body arrived
        self._counted_bytes = 0
        self._rejection: tuple[int, str] | None = None
        self._discarding = self._rejected = False
        self._discarded_bytes = 0
        self._phase: tuple[str, int] = ("head", 0)
        self._opened_s = self._since_s = self.loop.time()

    # Input

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Reject a connection beyond the limit, unless an idle one can be closed for it."""
        super().connection_made(transport)
        self.client, self.server = _without_mapping(self.client), _without_mapping(self.server)
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._reject(503, f"{self._limits.connections} connections are already open: try again later")

    def _make_room(self) -> bool:
        """Close some connections that were opened a while ago and never sent a request."""
        before_s = self.loop.time() - self._limits.silent_s
        others = cast(set[Connection], self.connections)
        silent = (
            other
            for other in others
            if other is not self and other.cycle is None and other._opened_s <= before_s
        )
        closed = list(itertools.islice(silent, _ENDED_TOGETHER))
        for other in closed:
            other.transport.abort()
        return bool(closed)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the bytes counted for an incomplete head."""
        self._count_head(0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes a piece at a time: limits are checked between pieces."""
        if len(data) <= _PIECE_BYTES:
            cycle: Any = self.cycle
            if type(cycle) is not ShortRequest or not self._take_parsed(cycle, data):
                self._receive(data)
            return
        view = memoryview(data)
        while view:
            length = max(_PIECE_BYTES, self._body_left)  # of a body, as much as there is
            self._receive(view[:length])
            view = view[length:]

    def _take_parsed(self, before: ShortRequest, data: bytes) -> bool:
        """Take a whole request to the fast path whose head was parsed before.

        Returns:
            False if the parser has to take the bytes; it has seen all of the requests before.
        """
        if not before.response_complete or self._in_message or self._unaccounted or self._discarding:
            return False
        request = self._shared.parsed_heads.find(data)
        assert self._fast_path is not None
        if request is None:
            self._receive(data)
            parsed: Any = self.cycle
            if type(parsed) is ShortRequest and parsed is not before and parsed.keep_alive:
                self._shared.parsed_heads.remember(data, parsed.headers, self._length)
            return True
        headers, body = request
        if not self._fast_path.admits(headers):
            return False
        self._steps += 1
        short = ShortRequest(before.scope, headers, True, body)
        self.cycle = short  # type: ignore[assignment]
        self._complete_short(short)
        return True

    def _receive(self, piece: bytes | memoryview) -> None:
        if self._discarding:
            self._discard(len(piece))
            return
        self._progressed = False
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._finish_after(self.cycle)  # answered as if it had not requested another protocol
            return
        except httptools.HttpParserError as error:
            self._reject(*(self._rejection or (400, f"not a valid HTTP request: {error}")))
            return
        if self._progressed:
            self._unaccounted = 0
            return
        self._unaccounted += len(piece)
        if self._unaccounted > self._limits.head_bytes - _PIECE_BYTES:
            self._reject(*self._too_long())
        elif self._in_head and self._unaccounted > _SMALL_HEAD_BYTES:
            self._count_head(self._unaccounted)
            if self._shared.heads_bytes > self._limits.heads_bytes:
                self._reject(503, "too many long request heads are arriving: try again later")

    def _too_long(self) -> tuple[int, str]:
        most = self._limits.head_bytes
        if self._in_head and not self.headers and len(getattr(self, "url", b"")) > self._unaccounted // 2:
            return 414, f"the request target is longer than the limit of {most} bytes"
        return 431, f"the header fields are longer than the limit of {most} bytes"

    def on_message_begin(self) -> None:
        """Begin to count the parts of a request."""
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[HAS_LEFT] = self.transport.is_closing
        self._length = self._body_left = self._step_bytes = 0
        self._progressed = self._in_head = self._in_message = True
        self._steps += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field, or respond 431 when there are too many."""
        if not self._in_head:
            return  # trailers are ignored
        if len(self.headers) >= self._limits.fields:
            self._stop(431, f"more header fields than the limit of {self._limits.fields}")
        once = _ONCE.get(len(name))
        if once is not None and name.lower() == once and any(once == before for before, _ in self.headers):
            self._stop(400, f"the header field {once.decode('ascii')} was sent twice")
        if len(name) == 6 and b"\\" in value and name.lower() == b"cookie":
            value = readable_cookies(value)
        super().on_header(name, value)
        if len(name) == 14 and self.headers[-1][0] == b"content-length":
            self._length = int(value) if value.isdigit() else 0

    def on_headers_complete(self) -> None:
        """Take the fast path for a short body to its route, uvicorn's otherwise."""
        self._in_head = False
        self._body_left = self._length
        self._progressed = True
        self._count_head(0)
        if len(self.url) > self._limits.head_bytes:
            self._stop(414, f"the request target is longer than the limit of {self._limits.head_bytes} bytes")
        if len(self.pipeline) >= self._limits.pipelined:
            self._stop(
                400, f"more than {self._limits.pipelined} requests were sent before the first was answered"
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
            self.cycle = ShortRequest(self.scope, self.headers, keep_alive)  # type: ignore[assignment]
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body; drop it if the response is complete."""
        self._progressed = True
        self._body_left -= len(body)
        cycle: Any = self.cycle
        if cycle.response_complete:
            self._discard(len(body))
            return
        self._step_bytes += len(body)
        if self._step_bytes >= _STEP_BYTES:
            self._step_bytes = 0
            self._steps += 1
        if type(cycle) is ShortRequest:
            cycle.body = cycle.body + body if cycle.body else body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Complete a request."""
        self._in_head = True
        self._in_message = False
        cycle: Any = self.cycle
        if type(cycle) is ShortRequest:
            self._complete_short(cycle)
            return
        if cycle.response_complete:
            cycle.more_body = False
        super().on_message_complete()

    def _complete_short(self, request: ShortRequest) -> None:
        request.more_body = False
        assert self._fast_path is not None
        finish = partial(self._finish_short, request)
        if not self._fast_path.post(request.headers, request.body, finish):
            self._hand_to_application(request)

    def _finish_short(self, cycle: ShortRequest, response: bytes | None) -> None:
        """Send the response of a short request, or hand it to the application."""
        if cycle.disconnected or self.transport.is_closing():
            return
        if response is None:
            self._hand_to_application(cycle)
            return
        cycle.response_complete = True
        end = b"\r\n\r\n" if cycle.keep_alive else b"\r\nconnection: close\r\n\r\n"
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%b: %b\r\ncontent-length: %d%b%b"
            % (_REQUEST_ID, new_request_id().encode("ascii"), len(response), end, response)
        )
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _hand_to_application(self, short: ShortRequest) -> None:
        assert self._fast_path is not None
        path = self._fast_path.path
        scope: Any = {
            **short.scope,
            "method": "POST",
            "path": path.decode("ascii"),
            "raw_path": path,
            "query_string": b"",
            "headers": list(short.headers),
            "state": self.app_state.copy(),
        }
        cycle = RequestResponseCycle(
            scope=scope,
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
        """Start the next request that waits on this connection."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    # Refusing

    def _stop(self, status: int, text: str) -> None:
        """Have the parser end: `_receive` refuses."""
        self._rejection = (status, text)
        raise _RequestRejected(text)

    def _reject(self, status: int, text: str) -> None:
        """Read no more requests; tell why, where no other answer is under way."""
        self._count_head(0)
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
        self._discarding = self._rejected = True
        client = self.client[0] if self.client else "-"
        self._shared.rejected(client, status, text)
        if self.transport.is_closing():
            return
        body = msgspec.json.encode({"error": text})
        phrase = HTTPStatus(status).phrase
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
            b"\r\n%b" % (status, phrase.encode("ascii"), len(body), body)
        )
        # If the socket were closed with unread input, the kernel would discard the response as well.
        self.transport.write_eof()
        self.flow.resume_reading()

    def _finish_after(self, cycle: Any) -> None:
        """Answer the requests so far and ignore further input."""
        self._discarding = True
        cycle.keep_alive = False

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > _MAX_DISCARDED_BYTES:
            self.transport.abort()

    def _count_head(self, size: int) -> None:
        """Set this connection's share of `heads_bytes`."""
        self._shared.heads_bytes += size - self._counted_bytes
        self._counted_bytes = size

    # Timeouts

    def check_timeout(self, now_s: float) -> None:
        """Close the connection if it has been in one phase for too long.

        Called about once a second for every connection: a timer for each request would cost more than the
            rest of
        this class.
        """
        phase, limit_s = self._current_phase()
        if phase != self._phase:
            self._phase, self._since_s = phase, now_s
        elif now_s - self._since_s > limit_s:
            if phase[0] == "body":
                self._reject(408, f"the body did not arrive within {limit_s:g} s")
            elif phase[0] in ("idle", "head"):
                self.transport.close()
            else:
                self.transport.abort()

    def _current_phase(self) -> tuple[tuple[str, int], float]:
        """The phase of the connection with a number that distinguishes repetitions, and its time limit."""
        limits, cycle = self._limits, self.cycle
        if self.flow.write_paused:
            return ("unread", self.transport.get_write_buffer_size() // _READ_BYTES), limits.unread_s
        if self._rejected:
            return ("rejected", self._steps), limits.rejected_s
        if cycle is not None and not cycle.response_complete:
            if cycle.more_body and not self.pipeline and not self._discarding:
                return ("body", self._steps), limits.body_s
            return ("working", self._steps), float("inf")
        if cycle is not None and cycle.more_body:  # it was answered before its body arrived
            return ("rejected", self._steps), limits.rejected_s
        if cycle is None or self._unaccounted:
            return ("head", self._steps), limits.head_s
        return ("idle", self._steps), limits.idle_s


def check_timeouts(connections: set[Any], now_s: float) -> None:
    """Close the connections that are over a time limit."""
    for connection in list(connections):
        cast(Connection, connection).check_timeout(now_s)


def readable_cookies(header: bytes) -> bytes:
    r"""A `Cookie` header without cookies that have quotes and backslashes. None of ours has.

    Before 3.11.10 and 3.12.6, Python takes seconds to read a quoted value of 60 kB of backslashes, in time
    that grows with the square of its length. FastAPI reads all cookies of every request, also of strangers.

    Example:
        >>> readable_cookies(rb'a=1; b="\054"; c="2"')
        b'a=1; c="2"'
    """
    cookies = header.split(b";")
    return b";".join(cookie for cookie in cookies if b"\\" not in cookie or b'"' not in cookie)


def _without_mapping(end: tuple[str, Port] | None) -> tuple[str, Port] | None:
    """Return an IPv4 address as such, also at a socket for IPv6: proxies are trusted by it."""
    return end if end is None else (end[0].removeprefix("::ffff:"), end[1])
