"""A shared server with accounts, on a port of loopback, and users who use it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import httpx

from runvitals.server.access.identification.credentials import PLAIN_COOKIE
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.build import ServerOptions, build_server
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.http.serve import Server, listen
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.shared_server import SharedServer
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import Fill, new_metadata_store
from tests.patience import PATIENCE_S

T0 = 1_800_000_000_000


class Clock:
    """The time of the server, which tests set."""

    def __init__(self) -> None:
        self.now_ms = T0

    def __call__(self) -> int:
        return self.now_ms


class AccountsServer:
    """A server that runs.

    Attributes:
        clock: its time.
        connection: sends the requests of `ask`.
    """

    def __init__(
        self, url: str, app: SharedServer, metadata_store: MetadataStore, store: SqliteChunks, clock: Clock
    ) -> None:
        self.url = url
        self.app = app
        self.metadata_store = metadata_store
        self.store = store
        self.clock = clock
        # One connection for all requests; each request has its own cookies.
        self.connection = self._new_client(cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])))

    @property
    def accounts(self) -> AccountStore:
        return self.metadata_store.accounts

    def user(self, name: str, **how: Any) -> UserRow:
        """Create a user with a verified address."""
        row = new_user(self.metadata_store, name, self.clock(), **how)
        self.app.services.access.rights_changed()  # the server has accounts from the first administrator on
        return row

    def start_mail(self, mailer: Mailer, box: SecretBox) -> None:
        """Let the server send mail."""
        services = self.app.services.account_services
        services.mailer, services.box = mailer, box

    def client(self, name: str | None = None, sudo: bool = True) -> httpx.Client:
        """A client that is signed in as this user; None: as nobody.

        Args:
            sudo: whether the password was confirmed a moment ago.
        """
        self.app.services.access.rights_changed()  # notice what the test changed directly in the database
        cookies = {} if name is None else {PLAIN_COOKIE: self._session(name, sudo)}
        return self._new_client(cookies=cookies)

    def _new_client(self, **how: Any) -> httpx.Client:
        headers = {"sec-fetch-site": "same-origin", "content-type": "application/json"}  # as the page
        return httpx.Client(base_url=f"{self.url}/api/v1/", headers=headers, timeout=PATIENCE_S, **how)

    def _session(self, name: str, sudo: bool) -> str:
        life = SessionLife() if sudo else SessionLife(sudo_ms=0)
        user = self.accounts.users.by_name(name)
        return self.accounts.sessions.create(user.id, self.clock(), life, method="password")

    def ask(self, name: str | None, method: str, path: str, status: int = 200, **how: Any) -> Any:
        """The JSON of an answer with this status."""
        self.app.services.access.rights_changed()
        headers = dict(how.pop("headers", {}))
        if name is not None:
            headers["cookie"] = f"{PLAIN_COOKIE}={self._session(name, sudo=True)}"
        response = self.connection.request(method, path, headers=headers, **how)
        assert response.status_code == status, f"{response.status_code}: {response.text}"
        return response.json() if response.content else None

    def actions(self, **filters: Any) -> list[str]:
        """The actions in the audit log, the oldest first."""
        return [event.action for event in reversed(self.accounts.audit.page(AuditFilter(**filters), 1000))]


def new_user(metadata_store: MetadataStore, name: str, now_ms: int = T0, **how: Any) -> UserRow:
    """Create a user with a verified address."""
    address = f"{name}@example.org"
    return metadata_store.accounts.users.create(name, CLI, now_ms, address=address, verified=True, **how)


@contextmanager
def accounts_server(
    folder: Path, address: str | None = None, fill: Fill | None = None, **options: Any
) -> Iterator[AccountsServer]:
    """A server with these stores.

    Args:
        address: of the metadata store; None: a file in the folder.
        fill: writes what that file begins with, as in `new_metadata_store`.
        options: others of the server.
    """
    store = SqliteChunks(str(folder / "store"))
    if address is None:
        metadata_store = new_metadata_store(folder / "catalogue.db", fill)
    else:
        metadata_store = open_metadata_store(address)
    clock = Clock()
    files = ReceivedFiles(str(folder / "files"), metadata_store, clock)
    app = build_server(store, metadata_store, ServerOptions(clock=clock, files=files, **options))
    listener = listen(0)
    http = Server(app)
    thread = threading.Thread(target=http.run, kwargs={"sockets": [listener]})
    with listener:
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            running = AccountsServer(url, app, metadata_store, store, clock)
            with running.connection:
                yield running
        finally:
            http.handle_exit(2, None)
            thread.join(timeout=PATIENCE_S)
            app.close()
            metadata_store.close()
            store.close()
