"""A shared server on a port of loopback, and connections to it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runvitals.server.build import ServerOptions, build_server
from runvitals.server.clock import Clock
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.http.response_memory import ResponseLimits
from runvitals.server.http.serve import Server, listen
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.shared_server import SharedServer
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store
from tests.patience import PATIENCE_S
from tests.server.page_port import listen_for_page

Address = tuple[str, int]


class Served:
    """A server that runs.

    Attributes:
        refused: status and reason of each connection that was refused.
    """

    def __init__(
        self,
        address: Address,
        store: SqliteChunks,
        metadata_store: MetadataStore,
        app: SharedServer,
        http: Server,
    ) -> None:
        self.address = address
        self.url = f"http://127.0.0.1:{address[1]}"
        self.store = store
        self.metadata_store = metadata_store
        self.app = app
        self.http = http
        self.refused: list[tuple[int, str]] = []

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    def say(self, *parts: bytes) -> bytes:
        """All that is answered to some bytes, until the server closes the connection."""
        with self.connect() as connection:
            try:
                for part in parts:
                    connection.sendall(part)
                return answered(connection)
            except (BrokenPipeError, ConnectionResetError):
                return b""


def answered(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@contextmanager
def serving(
    folder: Path,
    bounds: ConnectionLimits | None = None,
    limits: Limits | None = None,
    token_required: bool = False,
    response_limits: ResponseLimits | None = None,
    **how: Any,
) -> Iterator[Served]:
    """A server; `how`: further `ServerOptions`. With `static`, it listens where a page was before."""
    store, metadata_store = (
        SqliteChunks(str(folder / "store")),
        new_metadata_store(folder / "catalogue.db"),
    )
    how.setdefault("files", ReceivedFiles(str(folder / "files"), metadata_store, Clock()))
    app = build_server(
        store,
        metadata_store,
        ServerOptions(
            token_required=token_required, limits=limits or Limits(), response_limits=response_limits, **how
        ),
    )
    listener = listen_for_page() if "static" in how else listen(0)
    refused: list[tuple[int, str]] = []
    http = Server(app, bounds, lambda client, status, reason: refused.append((status, reason)))
    thread = threading.Thread(target=http.run, kwargs={"sockets": [listener]})
    with listener:
        thread.start()
        served = Served(listener.getsockname(), store, metadata_store, app, http)
        served.refused = refused
        try:
            yield served
        finally:
            http.handle_exit(2, None)
            thread.join(timeout=PATIENCE_S)
            app.close()
            metadata_store.close()
            store.close()
