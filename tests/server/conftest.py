from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from tests.empty_metadata import Fill
from tests.server.accounts_server import T0, AccountsServer, accounts_server, new_user
from tests.server.client import Client


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client of a local server over the test's folder."""
    return Client(tmp_path)


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[AccountsServer]:
    """A server with an administrator of the organisation, olga, and users who are in no team."""
    with accounts_server(tmp_path, fill=beginning(request)) as running:
        running.app.services.access.rights_changed()
        yield running


@pytest.fixture
def vision(server: AccountsServer) -> AccountsServer:
    """The same with a team: ada administers it, bob is a member, eve may only look."""
    return server


def beginning(request: pytest.FixtureRequest) -> Fill:
    """Writes what the server of a test begins with: users, and a team if the test asks for `vision`."""
    return with_team if "vision" in request.fixturenames else _with_users


def _with_users(metadata_store: MetadataStore) -> None:
    new_user(metadata_store, "olga", org_role="admin")
    for name in ("ada", "bob", "eve", "mallory"):
        new_user(metadata_store, name)


def with_team(metadata_store: MetadataStore) -> None:
    """Add users, and the team vision."""
    _with_users(metadata_store)
    accounts = metadata_store.accounts
    accounts.teams.create("vision", CLI, T0, administrator=accounts.users.by_name("ada").id)
    accounts.members.add("vision", "bob", "member", CLI, T0)
    accounts.members.add("vision", "eve", "viewer", CLI, T0)
