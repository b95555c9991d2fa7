"""Serves the real application on a free port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI

from runvitals.server.http.serve import Server, listen
from tests.patience import PATIENCE_S


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The URL of the served application."""
    listener = listen(0)
    server = Server(app)
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)
    assert not thread.is_alive()
