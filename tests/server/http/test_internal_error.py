"""An error of the server itself: the client learns that the connection ends, and the server keeps running."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.permission import needs
from runvitals.server.http.router import Router
from tests.patience import eventually
from tests.server.serving import serving

REQUEST = b"GET /api/v1/broken HTTP/1.1\r\nhost: localhost\r\n\r\n"


def test_a_connection_that_ends_after_an_error_says_so(tmp_path: Path) -> None:
    router = Router()

    @router.get("/api/v1/broken", needs(PUBLIC))
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


@pytest.mark.parametrize("path", [b"/graphql", b"/files/a/b/c/file_stream"])
def test_a_client_that_leaves_within_its_body_is_no_error_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: bytes
) -> None:
    left = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{" % path
    with serving(tmp_path) as served, caplog.at_level(logging.INFO):
        with served.connect() as connection:
            connection.sendall(left)
            eventually(lambda: served.app.services.door_recorder._admission.requests == 1)
        eventually(lambda: served.app.services.door_recorder._admission.requests == 0)
        assert served.say(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
