"""The server's log on stderr: one line per message, as text or JSON.

Control characters in what clients send are escaped. Tokens and passwords are not logged, nor are those in the
texts of errors. The number of lines in ten seconds is limited; further ones are counted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Literal, TextIO

import anyio
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.base.terminal_text import inert
from runvitals.monitoring.environment import redaction
from runvitals.server.http.error_forms import error_response
from runvitals.server.services import app_services

LogFormat = Literal["text", "json"]
SLOW_S = 1.0
"""A request that takes longer is logged, unless it waits for news on purpose."""
_MAX_LINES = 50
_PER_S = 10.0
_MAX_PATH_CHARACTERS = 300
_CLOSING = "the server is shutting down: try again later"

log = logging.getLogger("runvitals.access")


def configure(format: LogFormat, stream: TextIO | None = None) -> None:
    """Write all log records of this process, including uvicorn's, to stderr in one format."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    handler.addFilter(_is_not_cancelled)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("runvitals").setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # a library may have configured them
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True


def _is_not_cancelled(record: logging.LogRecord) -> bool:
    """Return False for the traceback of a cancelled request, which `AccessLog` logs."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class JsonLines(logging.Formatter):
    """`{"t", "level", "message", …}`: `t` in ISO 8601, UTC; the fields of the record; ASCII only."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a JSON object on one line, secrets redacted."""
        message = redaction.text(record.getMessage())
        line = {"t": _moment(record), "level": record.levelname.lower(), "message": message}
        line |= {"logger": record.name, **_fields(record)}
        if record.exc_info:
            line["trace"] = redaction.text(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """`<time> <level> <message> (<name>=<value>, …)`, followed by an indented traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text without control characters or secrets; a trace is indented below it."""
        fields = ", ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = f"{_moment(record)} {record.levelname.lower()} {redaction.text(record.getMessage())}"
        lines = [inert(f"{line} ({fields})" if fields else line)]
        if record.exc_info:
            trace = redaction.text(self.formatException(record.exc_info))
            lines += ["    " + inert(part) for part in trace.splitlines()]
        return "\n".join(lines)


def _moment(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


class AccessLog:
    """Middleware that logs failed, rejected and slow requests.

    Args:
        app: a Starlette application, or another one with an event `closing`.
        clock_s: a monotonic clock.
    """

    def __init__(self, app: ASGIApp, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock_s = clock_s
        self._allowance = float(_MAX_LINES)
        self._refilled_s = clock_s()
        self._left_out = 0
        self.fast_path = getattr(app, "fast_path", None)
        self.closing: anyio.Event = (
            app_services(app).closing if isinstance(app, Starlette) else app.closing  # type: ignore[attr-defined]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, and log it with its status and duration."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s = self._clock_s()
        status = 0
        waits = False

        async def send_and_note(message: Message) -> None:
            nonlocal status, waits
            if message["type"] == "http.response.start":
                status = message["status"]
                waits = status == 200 and _is_stream(scope)
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except asyncio.CancelledError:
            # uvicorn cancels what is unanswered a while after the signal to stop, and would answer 500.
            if status or not self.closing.is_set():
                raise
            response = error_response(scope["path"], 503, _CLOSING, {"retry-after": "1"})
            await response(scope, receive, send_and_note)
        finally:
            took_s = self._clock_s() - began_s
            if status >= 400 or (took_s > SLOW_S and not waits):
                self._log_request(scope, status, took_s)

    def rejected(self, client: str, status: int, reason: str) -> None:
        """Log a connection that was rejected before the application got a request."""
        self._write(
            logging.WARNING, "connection rejected", {"status": status, "client": client, "reason": reason}
        )

    def _log_request(self, scope: Scope, status: int, took_s: float) -> None:
        fields = {
            "method": scope["method"],
            "path": redaction.hide(scope["path"][:_MAX_PATH_CHARACTERS]),
            "status": status,
            "seconds": round(took_s, 3),
            "client": (scope.get("client") or ("-",))[0],
        }
        level = logging.ERROR if status >= 500 else logging.WARNING if status >= 400 else logging.INFO
        self._write(level, _message(status), fields)

    def _write(self, level: int, message: str, fields: dict[str, Any]) -> None:
        now_s = self._clock_s()
        earned = (now_s - self._refilled_s) * _MAX_LINES / _PER_S
        self._allowance = min(float(_MAX_LINES), self._allowance + earned)
        self._refilled_s = now_s
        if self._allowance < 1:
            self._left_out += 1
            return
        self._allowance -= 1
        if self._left_out:
            fields["left_out"] = self._left_out
            self._left_out = 0
        log.log(level, message, extra={"fields": fields})


def _is_stream(scope: Scope) -> bool:
    """Return whether a request waits for news on purpose."""
    return scope["path"].endswith("/live") or b"wait=" in scope.get("query_string", b"")


def _message(status: int) -> str:
    if status == 0:
        return "request without a response: the client left or the server is shutting down"
    if status >= 500:
        return "request failed"
    return "request rejected" if status >= 400 else "slow request"
