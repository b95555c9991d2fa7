"""Routes that a command calls in its own process, and that nobody gets its rights over the network."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Scope

import runvitals.server
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.principals import CommandLine, Operator
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.access.resources import Account, Entity, Organisation, Project
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.build import ServerOptions, build_server
from runvitals.server.in_process import RoutesInProcess
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.store.errors import NameTaken, NotFound
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store

T0 = 1_800_000_000_000
ROLE = {"name": "Labeller", "base": "viewer", "permissions": ["run:update"]}


@pytest.fixture
def metadata_store(tmp_path: Path) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as store:
        yield store


@pytest.fixture
def routes(metadata_store: MetadataStore) -> Iterator[RoutesInProcess]:
    with closing(RoutesInProcess(metadata_store, lambda: T0)) as routes:
        yield routes


def test_the_audit_log_says_that_the_command_line_did_it(
    routes: RoutesInProcess, metadata_store: MetadataStore
) -> None:
    assert routes.send("POST", "/organisation/roles", {}, ROLE)["name"] == "Labeller"
    (event,) = metadata_store.accounts.audit.page(AuditFilter())
    assert event.action == "role.create"
    assert (event.actor_kind, event.actor_name, event.via) == (CLI.kind, CLI.name, CLI.via)
    assert (event.actor_id, event.key_public_id, event.ip, event.agent, event.request_id) == (None,) * 5
    assert Requester(CommandLine(), name="cli", via="cli").actor == CLI


def test_it_works_before_there_are_accounts(routes: RoutesInProcess, metadata_store: MetadataStore) -> None:
    assert not metadata_store.accounts.users.any_administrator()
    settings = routes.send("PUT", "/organisation/settings", {}, {"trash_days": 7})
    assert settings["settings"]["trash_days"]["value"] == 7


def test_errors_are_those_of_the_storage_or_the_text_of_the_response(routes: RoutesInProcess) -> None:
    routes.send("POST", "/organisation/roles", {}, ROLE)
    with pytest.raises(NameTaken, match="already exists"):
        routes.send("POST", "/organisation/roles", {}, ROLE)
    with pytest.raises(NotFound, match="there is no role"):
        routes.send("DELETE", "/organisation/roles/{role}", {"role": "eve"}, None)
    with pytest.raises(ValueError, match="base: "):
        routes.send("POST", "/organisation/roles", {}, {**ROLE, "base": "admin"})
    with pytest.raises(ValueError, match="cannot add 'fly'"):
        routes.send("POST", "/organisation/roles", {}, {**ROLE, "name": "x", "permissions": ["fly"]})
    with pytest.raises(ValueError, match="smtp_url is stored encrypted, with keys that the server has"):
        routes.send("PUT", "/organisation/settings", {}, {"smtp_url": "smtp://mail.example.org"})


def test_a_project_whose_name_has_a_slash(routes: RoutesInProcess, metadata_store: MetadataStore) -> None:
    team = metadata_store.accounts.teams.create("vision", CLI, T0)
    sender = Sender(team.id, None, None)
    metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "a/b", sender=sender)], 1)
    path = "/entities/{entity}/projects/{project}"
    renamed = routes.send("PATCH", path, {"entity": "vision", "project": "a/b"}, {"name": "digits"})
    assert renamed["name"] == "digits"
    with pytest.raises(LookupError, match="there is no project 'vision/c/d'"):
        routes.send("PATCH", path, {"entity": "vision", "project": "c/d"}, {"description": "x"})


def test_a_change_and_what_belongs_to_it_are_made_together(
    routes: RoutesInProcess, metadata_store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = metadata_store.accounts
    accounts.users.create("ada", CLI, T0, org_role="admin")
    accounts.users.create("bob", CLI, T0, address="bob@example.org", verified=True)

    def fail(*_: object, **__: object) -> bool:
        raise OSError("the disk is full")

    monkeypatch.setattr(type(accounts.mail_drafts), "send", fail)
    with pytest.raises(OSError, match="the disk is full"):
        routes.send("PATCH", "/organisation/members/{name}", {"name": "bob"}, {"state": "suspended"})
    assert accounts.users.by_name("bob").state == "active"
    assert "user.suspend" not in {event.action for event in accounts.audit.page(AuditFilter())}


def test_other_processes_notice_a_change_of_rights(
    routes: RoutesInProcess, metadata_store: MetadataStore
) -> None:
    routes.send("POST", "/organisation/roles", {}, ROLE)
    before = metadata_store.accounts.generation()
    routes.send("DELETE", "/organisation/roles/{role}", {"role": "Labeller"}, None)
    assert metadata_store.accounts.generation() > before


def test_it_has_no_account_of_its_own() -> None:
    team = Entity(7)
    for action, resource in (
        (Action.ORG_SETTINGS, Organisation()),
        (Action.TEAM_DELETE, team),
        (Action.PROJECT_TRANSFER, Project(3, team)),
    ):
        assert decide(CommandLine(), action, resource) is Decision.ALLOWED
        assert decide(Operator(), action, resource) is not Decision.ALLOWED
    for action in (Action.ACCOUNT_READ, Action.ACCOUNT_UPDATE, Action.ACCOUNT_DELETE):
        assert decide(CommandLine(), action, Account(1)) is Decision.HIDDEN


def test_only_calls_in_process_are_made_by_the_command_line() -> None:
    folder = Path(runvitals.server.__file__).parent
    makers = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"(?<!class )CommandLine\(\)", path.read_text(encoding="utf-8"))
    }
    assert makers == {"in_process.py"}


@pytest.mark.parametrize("accounts_exist", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "cli"},
        {"authorization": "Bearer cli", "x-runvitals-link": "cli"},
        {"x-runvitals-requester": "cli", "x-forwarded-for": "127.0.0.1", "x-request-id": "cli"},
    ],
)
@pytest.mark.parametrize("forged", [False, True])
def test_no_request_gets_its_rights(
    metadata_store: MetadataStore, tmp_path: Path, accounts_exist: bool, headers: dict[str, str], forged: bool
) -> None:
    """Not even one whose scope claims them, as from a broken server before the middleware."""
    if accounts_exist:
        metadata_store.accounts.users.create("ada", CLI, T0, org_role="admin")
    before = len(metadata_store.accounts.audit.page(AuditFilter(), 100))
    with SqliteChunks(tmp_path / "store") as store:
        server = build_server(store, metadata_store, ServerOptions(clock=lambda: T0))
        try:
            for method, path, body in (
                ("POST", "/api/v1/organisation/roles", ROLE),
                ("PUT", "/api/v1/organisation/settings", {"trash_days": 7}),
                ("POST", "/api/v1/teams", {"name": "vision"}),
                ("PATCH", "/api/v1/organisation/members/ada", {"state": "suspended"}),
            ):
                scope = http_scope(method, path, headers)
                if forged:
                    scope[SCOPE_KEY] = Requester(CommandLine(), name="cli", via="cli")
                assert asyncio.run(status_of(server, scope, body)) in (401, 403)
        finally:
            server.close()
    assert len(metadata_store.accounts.audit.page(AuditFilter(), 100)) == before


def http_scope(method: str, path: str, headers: dict[str, str]) -> Scope:
    sent = {"host": "127.0.0.1", "content-type": "application/json", **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8900),
    }


async def status_of(app: Any, scope: Scope, body: Any) -> int:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return int(sent[0]["status"])
