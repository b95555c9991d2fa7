from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.doors.scim.provider import Provider


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    """An identity provider, and a server with an administrator, olga, and a user, bob."""
    with accounts_server(tmp_path) as server:
        server.user("olga", org_role="admin")
        server.user("bob")
        secret = server.ask("olga", "POST", "organisation/scim-secret", 201)["secret"]
        with Provider(server, secret, PATIENCE_S) as running:
            yield running


@pytest.fixture
def server(provider: Provider) -> AccountsServer:
    provider.server.accounts.teams.create(
        "vision", CLI, provider.server.clock(), administrator=provider.server.accounts.users.by_name("bob").id
    )
    return provider.server
