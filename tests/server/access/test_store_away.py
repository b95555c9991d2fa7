"""For how long a key is accepted while the metadata store cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from starlette.types import Scope

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.identification.authenticator import KNOWN_WHILE_AWAY_S, Authenticator
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.metadata_store import MetadataStore
from tests.empty_metadata import new_metadata_store

NOW = 1_790_812_800_000


class Outage:
    """A metadata store whose file is moved away, a user with a key, and the clocks."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "catalogue.db"
        self.store: MetadataStore = new_metadata_store(self.path)
        self.now_s = 0.0
        self.user_id = self.store.accounts.users.create("rita", CLI, NOW, org_role="admin").id
        self.keys = self.store.accounts.keys
        self.directory = Directory(self.store, lambda: NOW + int(self.now_s * 1000), lambda: self.now_s)
        self.authenticator = Authenticator(self.directory, lambda: self.now_s)
        self.directory.rights_changed()

    def key(self, expires_ms: int | None = None) -> str:
        return self.keys.create("k", CLI, NOW, user_id=self.user_id, expires_ms=expires_ms)[0]

    def begin(self) -> None:
        self.path.rename(self.path.with_name("elsewhere.db"))

    def end(self) -> None:
        self.path.with_name("elsewhere.db").rename(self.path)

    def ask(self, key: str, while_away: bool = True) -> str:
        """The name of the owner of a key, or the status of the rejection."""
        headers = [(b"authorization", f"Bearer {key}".encode())]
        scope: Scope = {"type": "http", "headers": headers, "scheme": "http", "client": ("127.0.0.1", 1)}
        try:
            requester = anyio.run(self.authenticator.requester, scope, while_away)
        except HttpRejection as error:
            return str(error.status)
        return requester.name


@pytest.fixture
def outage(tmp_path: Path) -> Iterator[Outage]:
    outage = Outage(tmp_path)
    yield outage
    outage.store.close()


def test_a_key_is_accepted_for_an_hour_where_samples_are_sent(outage: Outage) -> None:
    key, unused = outage.key(), outage.key()
    assert outage.ask(key) == "rita"
    outage.begin()
    for now_s in (0.5, 3.0, 31.0, KNOWN_WHILE_AWAY_S - 1):
        outage.now_s = now_s
        assert outage.ask(key) == "rita"
        assert outage.ask(unused) == "503"
    assert outage.ask(key, while_away=False) == "503"
    outage.now_s = KNOWN_WHILE_AWAY_S + 1
    assert outage.ask(key) == "503"
    outage.end()
    outage.directory.rights_changed()
    assert outage.ask(key) == "rita"


def test_a_key_that_ends_or_was_revoked_is_refused(outage: Outage) -> None:
    ends = outage.key(NOW + 60_000)
    revoked, row = outage.keys.create("revoked", CLI, NOW, user_id=outage.user_id)
    assert (outage.ask(ends), outage.ask(revoked)) == ("rita", "rita")
    outage.keys.revoke(row.id, CLI, NOW)
    outage.now_s = 1.0
    outage.directory.rights_changed()  # a change of rights: keys in use are looked up again
    outage.begin()
    outage.now_s = 10.0
    assert (outage.ask(ends), outage.ask(revoked)) == ("rita", "503")
    outage.now_s = 61.0
    assert outage.ask(ends) == "503"
