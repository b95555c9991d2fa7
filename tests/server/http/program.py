"""Serves an application until SIGTERM: `python -m tests.server.http.program`. Run by `test_serve.py`.

Prints its URL as JSON, and then the interpreter's settings before and after serving. `/settings` answers with
those meanwhile; a request to any other path gets no answer.
"""

from __future__ import annotations

import gc
import json
import sys

import anyio
from starlette.types import Receive, Scope, Send

from runvitals.server.http import serve


class Application:
    """An ASGI application."""

    def __init__(self) -> None:
        self.closing = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/settings":
            _print({"pending": scope["path"]})
            await anyio.sleep_forever()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(settings()).encode()})


def settings() -> dict[str, object]:
    """Return what a server changes in the interpreter."""
    return {
        "gc": gc.get_threshold(),
        "frozen": gc.get_freeze_count() > 0,
        "switch_s": round(sys.getswitchinterval(), 6),
    }


def main() -> None:
    listener = serve.listen(0)
    before = settings()
    _print({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
    serve.serve(Application(), listener)
    _print({"before": before, "after": settings()})


def _print(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
