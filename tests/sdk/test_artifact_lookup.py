"""The wait for a version that is on its way to a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runvitals.client import ServerError
from runvitals.sdk.artifacts.lookup import ArtifactScope, find_content


@contextmanager
def _answering(status: Callable[[int], int]) -> Iterator[ArtifactScope]:
    """Serve these statuses, by the number of the request."""
    count = 0

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal count
            count += 1
            self.send_response(status(count))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield ArtifactScope(f"http://127.0.0.1:{server.server_port}", None, None, "digits")
        server.shutdown()


def test_a_server_that_is_away_is_asked_again() -> None:
    with _answering(lambda number: 503 if number == 1 else 404) as scope:
        assert find_content(scope, "mnist", "digest", 0.01) is None
    with pytest.raises(ServerError):
        find_content(scope, "mnist", "digest", 0.0)  # nobody listens there now


def test_a_refused_request_is_not_repeated() -> None:
    with _answering(lambda number: 403 if number == 1 else 404) as scope, pytest.raises(ServerError):
        find_content(scope, "mnist", "digest", 60.0)
