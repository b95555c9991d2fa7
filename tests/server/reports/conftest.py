from __future__ import annotations

import pytest

from tests.server.accounts_server import AccountsServer
from tests.server.projects.routes.conftest import add_run


@pytest.fixture
def digits(vision: AccountsServer) -> AccountsServer:
    """The team with a project `digits` that has a run."""
    add_run(vision, "run-bob", "digits", "bob")
    return vision
