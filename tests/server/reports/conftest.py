from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import AccountsServer
from tests.server.projects.routes.conftest import add_run
from tests.server.reports.runs import record_run


@pytest.fixture
def digits(vision: AccountsServer) -> AccountsServer:
    """The team with a project `digits` that has a run."""
    add_run(vision, "run-bob", "digits", "bob")
    return vision


@pytest.fixture
def rates(vision: AccountsServer) -> AccountsServer:
    """The team with three runs, and a run of another team."""
    for number, rate in enumerate((0.1, 0.1, 0.3)):
        record_run(
            vision,
            f"run-{number}",
            {"loss": [1.0 - number / 10, 0.5, 0.25], "acc/top1": [0.0, 0.5, 1.0], "secret": [7.0, 7.0, 7.0]},
            system={"gpu.0.gpu": [10.0, 20.0, 30.0], "gpu.1.gpu": [30.0, 40.0, 50.0], "cpu": [1.0, 1.0, 1.0]},
            config={"lr": rate, "model": "vit"},
            printed=f"step {number}\nlast line\n",
        )
    olga = vision.accounts.users.by_name("olga")
    vision.accounts.teams.create("audio", CLI, vision.clock(), administrator=olga.id)
    record_run(vision, "hidden", {"loss": [9.0]}, project="songs", team="audio", author="olga")
    return vision
