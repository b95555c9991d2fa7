"""An error of the server itself: the client learns that the connection ends, and the server keeps running."""

from __future__ import annotations

import json
from pathlib import Path

from runvitals.server.access.permission import PUBLIC, needs
from runvitals.server.router import Router
from tests.server.serving import serving

REQUEST = b"GET /api/v1/broken HTTP/1.1\r\nhost: localhost\r\n\r\n"


def test_a_connection_that_ends_after_an_error_says_so(tmp_path: Path) -> None:
    router = Router()

    @router.get("/api/v1/broken", dependencies=[needs(PUBLIC)])
    def broken() -> None:
        raise ZeroDivisionError("the secret of the matter")

    with serving(tmp_path, routers=[router]) as served:
        head, _, body = served.say(REQUEST).partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        assert lines[0] == b"http/1.1 500 internal server error"
        assert b"connection: close" in lines
        assert list(json.loads(body)) == ["error"]
        assert b"secret" not in body
        assert served.say(REQUEST).startswith(b"HTTP/1.1 500 ")
