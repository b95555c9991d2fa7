from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.store.metadata.accounts.audit import CLI
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.client import Client


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client of a local server over the test's folder."""
    return Client(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AccountsServer]:
    """A server with an administrator of the organisation, olga, and users who are in no team."""
    with accounts_server(tmp_path) as running:
        yield with_users(running)


def with_users(server: AccountsServer) -> AccountsServer:
    server.user("olga", org_role="admin")
    for name in ("ada", "bob", "eve", "mallory"):
        server.user(name)
    return server


@pytest.fixture
def vision(server: AccountsServer) -> AccountsServer:
    """The same with a team: ada administers it, bob is a member, eve may only look."""
    by, now_ms = CLI, server.clock()
    server.accounts.teams.create("vision", by, now_ms, administrator=server.accounts.users.by_name("ada").id)
    server.accounts.members.add("vision", "bob", "member", by, now_ms)
    server.accounts.members.add("vision", "eve", "viewer", by, now_ms)
    return server
