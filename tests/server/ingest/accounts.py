"""The ingest endpoint of a server with accounts: two teams, a user and a service account of the first."""

from __future__ import annotations

import json
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.enforcement.refusals import Refusals
from runvitals.server.access.identification.identity import Credential
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http.body_limits import Limits
from runvitals.server.ingest.endpoint import IngestEndpoint
from runvitals.server.ingest.sender_rights import Headers, IngestRightsCache
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_rows import RunRow
from tests.server.ingest.server import NOW, Server


class AccountServer(Server):
    """Keys by the name of their owner: `ada` administers vision, `bob` speech, `vic` may look at vision; `ci`
    is a service account of vision.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder, Limits())
        self.monotonic_s = 0.0
        store = self.metadata_store
        self.directory = Directory(store, lambda: self.now_ms, lambda: self.monotonic_s)
        self.access = IngestRightsCache(
            store,
            self.directory,
            self.known_owner,
            lambda: True,
            lambda: self.now_ms,
            Refusals(store, lambda: self.now_ms),
        )
        self.ingest = IngestEndpoint(self.recorder, Limits(), self.counters, self.access)
        self.endpoint: ASGIApp = self.authenticated  # type: ignore[assignment]
        self.known: dict[str, Requester] = {}
        accounts = store.accounts
        self.users = {name: accounts.users.create(name, CLI, NOW).id for name in ("ada", "bob", "vic")}
        self.vision = accounts.teams.create("vision", CLI, NOW, administrator=self.users["ada"]).id
        self.speech = accounts.teams.create("speech", CLI, NOW, administrator=self.users["bob"]).id
        accounts.members.add("vision", "vic", "viewer", CLI, NOW)
        self.ci = accounts.service_accounts.create("ci", self.vision, CLI, NOW).id
        self.keys = {
            name: accounts.keys.create(name, CLI, NOW, user_id=i)[0] for name, i in self.users.items()
        }
        self.keys["ci"] = accounts.keys.create("ci", CLI, NOW, service_account_id=self.ci)[0]
        self.rights_changed()

    def rights_changed(self) -> None:
        self.directory.rights_changed()
        self.known = {}

    def owner(self, secret: str) -> Requester | None:
        identity = self.directory.identify(Credential("key", secret))
        return None if identity is None else Requester(identity.principal, identity.name, "key")

    def known_owner(self, headers: Headers) -> Requester | None:
        return self.known.get(dict(headers).get(b"authorization", b"").decode().partition(" ")[2])

    async def authenticated(self, scope: Scope, receive: Receive, send: Send) -> None:
        secret = dict(scope["headers"]).get(b"authorization", b"").decode().partition(" ")[2]
        owner = self.owner(secret)
        if owner is None:
            self.known.pop(secret, None)
        else:
            self.known[secret] = scope[SCOPE_KEY] = owner
        await self.ingest(scope, receive, send)

    def send(self, key: str, *envelopes: dict[str, Any], **headers: str) -> httpx.Response:
        """Post envelopes with somebody's key, as a list if there are several."""
        body = envelopes[0] if len(envelopes) == 1 else list(envelopes)
        secret = self.keys.get(key, key)
        return self.post(json.dumps(body).encode(), authorization=f"Bearer {secret}", **headers)

    def post_fast(self, key: str, envelope: dict[str, Any]) -> bool:
        """Whether an envelope is accepted without a look-up."""
        headers = [
            (b"content-type", b"application/json"),
            (b"authorization", f"Bearer {self.keys[key]}".encode()),
        ]
        return self.ingest.post(headers, json.dumps(envelope).encode(), lambda response: None)

    def run(self, uid: str, entity: str) -> RunRow:
        """A run in the store."""
        store: MetadataStore = self.metadata_store
        [match] = [match for match in store.runs.places(uid) if match.entity == entity]
        return store.runs.get([match.run_id], NOW)[match.run_id]

    def entities(self, uid: str) -> list[str | None]:
        """The entities that have a run with this id."""
        return [each.entity for each in self.metadata_store.runs.places(uid)]


def envelope(run: str = "abc", seq: int = 1, **more: Any) -> dict[str, Any]:
    """An envelope with one sample."""
    return {"run": run, "writer": "w", "seq": seq, "keys": ["cpu"], "t": [NOW + seq], "v": [[1.0]], **more}
