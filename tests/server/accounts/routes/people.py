"""A server with accounts, its users and their browsers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.passwords import Passwords
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.database.secret_box import SecretBox
from tests.patience import PATIENCE_S
from tests.server.mail.receiver import Receiver
from tests.server.serving import Served, serving

PASSWORD = "a long enough passphrase"
OTHER_PASSWORD = "another long passphrase"
COOKIE = "runvitals_session"
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}
T0 = 1_800_000_000_000


class CountingHasher(PasswordHasher):  # type: ignore[misc]
    """Hashes cheaply, and counts."""

    verified = hashed = 0

    def __init__(self, memory_cost: int = 8) -> None:
        super().__init__(time_cost=1, memory_cost=memory_cost, parallelism=1)

    def hash(self, password: Any, *, salt: bytes | None = None) -> str:
        self.hashed += 1
        return str(super().hash(password, salt=salt))

    def verify(self, hash: Any, password: Any) -> Any:
        self.verified += 1
        return super().verify(hash, password)


class Browser(httpx.Client):
    """A browser with the server's page open: it keeps cookies and says where requests come from."""

    def __init__(self, url: str, **how: Any) -> None:
        headers = {**SAME_ORIGIN, **how.pop("headers", {})}
        super().__init__(base_url=f"{url}/api/v1", headers=headers, timeout=PATIENCE_S, **how)

    def sign_in(self, name: str, password: str = PASSWORD, **more: str) -> httpx.Response:
        who = {"email" if "@" in name else "name": name}
        return self.post("/auth/login", json={**who, "password": password, **more})

    @property
    def secret(self) -> str:
        """The session cookie."""
        return self.cookies.get(COOKIE) or ""


class People:
    """A server with accounts. `rita` administers it; every user has `PASSWORD`.

    Attributes:
        now_ms, now_s: the clocks of the server.
        hasher: counts the passwords that were checked.
        mail: what the server sent.
        clients: what to close at the end.
    """

    def __init__(self) -> None:
        self.now_ms, self.now_s = T0, 1000.0
        self.hasher = CountingHasher()
        self.passwords = Passwords(self.hasher)
        self.mail = Receiver()
        self.clients: list[httpx.Client] = []
        self._hash = self.passwords.hash(PASSWORD)
        self.served: Served

    @property
    def accounts(self) -> AccountStore:
        return self.served.metadata_store.accounts

    @property
    def url(self) -> str:
        return self.served.url

    def pass_s(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.now_ms += round(seconds * 1000)
        self.now_s += seconds

    def add(self, name: str, **how: Any) -> UserRow:
        """A user with a confirmed address."""
        how = {"address": f"{name}@lab.example", "verified": True, "hashed_password": self._hash, **how}
        user = self.accounts.users.create(name, CLI, self.now_ms, **how)
        self.rights_changed()
        return user

    def rights_changed(self) -> None:
        """Have the server notice a change that was made directly in its database."""
        self.served.app.services.access.rights_changed()

    def set(self, **settings: Any) -> None:
        """Change settings of the organisation."""
        self.accounts.settings.put(settings, CLI, self.now_ms)
        self.rights_changed()

    def browser(self, name: str | None = None, **how: Any) -> Browser:
        """A new browser, in which this user is signed in."""
        browser = Browser(self.url, **how)
        self.clients.append(browser)
        if name is not None:
            assert browser.sign_in(name).status_code == 200
        return browser

    def program(self, key: str) -> httpx.Client:
        """A program with an API key."""
        headers = {"authorization": f"Bearer {key}"}
        client = httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=PATIENCE_S)
        self.clients.append(client)
        return client

    def mail_to(self, address: str, number: int) -> EmailMessage:
        """The last of so many mails that the server sent, which is to this address."""
        self.mail.wait_for(number)
        assert len(self.mail.received) == number, [mail["subject"] for mail in self.mail.received]
        message = self.mail.received[number - 1]
        assert message["to"] == address
        return message

    def actions(self) -> list[str]:
        """The actions in the audit log, the oldest first."""
        return [event.action for event in reversed(self.accounts.audit.page(AuditFilter(), 1000))]


def token_in(message: EmailMessage) -> str:
    """The secret of the link in a mail."""
    part = message.get_body(("plain",))
    assert part is not None
    match = re.search(r"#([\w-]+)", part.get_content())
    assert match is not None
    return match[1]


@contextmanager
def serving_people(folder: Path, **how: Any) -> Iterator[People]:
    """A server with accounts on loopback, without mail."""
    people = People()
    own = {
        "clock": lambda: people.now_ms,
        "monotonic": lambda: people.now_s,
        "passwords": people.passwords,
        "secret_box": SecretBox({"k": bytes(32)}),
        **how,
    }
    with serving(folder, **own) as served:
        people.served = served
        people.add("rita", org_role="admin")
        try:
            yield people
        finally:
            for client in people.clients:
                client.close()
