from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.accounts_server import AccountsServer


def add_run(server: AccountsServer, uid: str, project: str, author: str, team: str = "vision") -> None:
    """Store a run of a user."""
    entity_id = server.accounts.teams.by_name(team).id
    sender = Sender(entity_id, server.accounts.users.by_name(author).id, None)
    writer = WriterRegistration(uid, f"monitor.{uid}", project, interval_s=1, sender=sender)
    server.metadata_store.writers.join([writer], server.clock())


@pytest.fixture
def digits(vision: AccountsServer) -> AccountsServer:
    """The team with a project `digits`, owned by bob, with a run of bob and one of ada."""
    add_run(vision, "run-bob", "digits", "bob")
    add_run(vision, "run-ada", "digits", "ada")
    number = vision.metadata_store.projects.id("digits")
    bob = vision.accounts.users.by_name("bob").id
    vision.accounts.owned_projects.update(number, CLI, vision.clock(), owner_id=bob)
    return vision
