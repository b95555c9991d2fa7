"""What the tests of wandb start: a server with accounts, and a service that makes users and teams in it.

Their users have keys that are their names, so requests get the user's real key on their way to the server.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.build import ServerOptions, build_server
from runvitals.server.clock import Clock
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.http.serve import Server, listen
from runvitals.server.shared_server import SharedServer
from runvitals.store.errors import NameTaken
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store
from tests.patience import PATIENCE_S

_AUTHORIZATION = b"authorization"


class Backend(NamedTuple):
    """The ports of the server and of the service that makes users."""

    port: int
    fixture_port: int


class _WithRealKeys:
    """An application whose requests have names of users for keys."""

    def __init__(self, app: SharedServer) -> None:
        self._app = app
        self.keys: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "fast_path":
            raise AttributeError(name)
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [
                (name, self._real(value) if name == _AUTHORIZATION else value)
                for name, value in scope["headers"]
            ]
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)

    def _real(self, value: bytes) -> bytes:
        kind, _, text = value.decode("latin-1").partition(" ")
        try:
            name = base64.b64decode(text).decode().partition(":")[2] if kind == "Basic" else text
        except ValueError:
            return value
        key = self.keys.get(name)
        return value if key is None else b"Bearer " + key.encode()


class _Users:
    """Makes users and teams, as the commands of the tests ask."""

    def __init__(self, app: _WithRealKeys, accounts: Any) -> None:
        self._app = app
        self._accounts = accounts
        self._now_ms = Clock()

    def handle(self, path: str, sent: dict[str, Any]) -> None:
        command, accounts, now_ms = sent.get("command"), self._accounts, self._now_ms()
        if path == "/db/user" and command == "up":
            user = accounts.users.create(
                sent["username"], CLI, now_ms, org_role="admin" if sent.get("admin") else "member"
            )
            key, _ = accounts.keys.create("tests", CLI, now_ms, user_id=user.id, scope="full")
            self._app.keys[sent["username"]] = key
        elif path == "/db/team" and command == "up":
            name = sent["fixtureData"]["team"]["name"]
            user = accounts.users.by_name(sent["username"])
            accounts.teams.create(name, CLI, now_ms, administrator=user.id)
        self._app.services.access.rights_changed()


@contextmanager
def backend(folder: Path) -> Iterator[Backend]:
    """Run both until the end of the block."""
    store, metadata_store = SqliteChunks(str(folder / "store")), new_metadata_store(folder / "catalogue.db")
    files = ReceivedFiles(str(folder / "files"), metadata_store, Clock())
    app = _WithRealKeys(build_server(store, metadata_store, ServerOptions(files=files)))
    accounts = metadata_store.accounts
    accounts.users.create("administrator", CLI, Clock()(), org_role="admin")
    app.services.access.rights_changed()
    users = _Users(app, accounts)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                users.handle(self.path, sent)
                status, text = 200, b"{}"
            except (NameTaken, ValueError, KeyError) as error:
                status, text = 400, str(error).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    fixtures = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener = listen(0)
    http = Server(app)  # type: ignore[arg-type]
    threads = [
        threading.Thread(target=http.run, kwargs={"sockets": [listener]}),
        threading.Thread(target=fixtures.serve_forever),
    ]
    with listener:
        for thread in threads:
            thread.start()
        try:
            yield Backend(listener.getsockname()[1], fixtures.server_address[1])
        finally:
            http.handle_exit(2, None)
            fixtures.shutdown()
            for thread in threads:
                thread.join(PATIENCE_S)
            fixtures.server_close()
            app.close()
            metadata_store.close()
            store.close()
