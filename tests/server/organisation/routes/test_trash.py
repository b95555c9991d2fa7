"""What ends by itself on a server with accounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.background.housekeeping import Housekeeping, RetentionPolicy
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store
from tests.server.accounts_server import T0, AccountsServer
from tests.server.projects.routes.conftest import add_run

DAY = 86_400_000


def housekeep(server: AccountsServer, days: int) -> None:
    server.clock.now_ms += days * DAY
    policy = RetentionPolicy(trash_ms=None)
    Housekeeping(
        server.store,
        server.metadata_store,
        policy,
        server.app.forget,
        server.clock,
        server.app.services.account_services.mailer,
    ).run_once()


@pytest.fixture
def filled(vision: AccountsServer) -> AccountsServer:
    add_run(vision, "run-bob", "digits", "bob")
    add_run(vision, "run-ada", "letters", "ada")
    return vision


def test_a_team_is_removed_after_the_waiting_period(filled: AccountsServer) -> None:
    filled.ask("ada", "POST", "teams/vision/service-accounts", 201, json={"name": "ci"})
    filled.ask("ada", "POST", "teams/vision/invitations", json={"people": ["new@example.net"]})
    filled.ask("olga", "DELETE", "teams/vision", 202, json={"confirm": "vision"})
    housekeep(filled, 29)
    assert filled.accounts.teams.by_name("vision").members == 3
    housekeep(filled, 2)
    assert filled.accounts.teams.all() == []
    assert filled.accounts.service_accounts.all() == []
    assert filled.accounts.keys.all() == []
    assert filled.accounts.invitations.all(pending=False) == []
    assert filled.metadata_store.runs.find("run-bob", filled.clock()) is None
    filled.ask("olga", "POST", "teams", 409, json={"name": "vision"})  # the name stays taken
    assert "team.purge" in filled.actions(entity="vision")
    assert "team.create" in filled.actions(entity="vision")


def test_a_project_is_removed_with_its_runs(filled: AccountsServer) -> None:
    filled.ask("ada", "DELETE", "entities/vision/projects/digits", 202)
    housekeep(filled, 29)
    assert filled.ask("ada", "GET", "entities/vision/projects/digits")["deleted_ms"] == T0
    housekeep(filled, 2)
    filled.ask("ada", "GET", "entities/vision/projects/digits", 404)
    assert filled.metadata_store.runs.find("run-bob", filled.clock()) is None
    assert filled.ask("ada", "GET", "runs/run-ada")["project"] == "letters"
    assert "project.purge" in filled.actions(entity="vision")


def test_a_deleted_user_leaves_runs_in_teams_and_nothing_else(filled: AccountsServer) -> None:
    filled.ask("ada", "PATCH", "teams/vision/members/bob", json={"role": "admin"})
    filled.ask("ada", "POST", "runs/run-ada/move", 404, json={"entity": "ada", "project": "own"})
    number = filled.metadata_store.projects.id("letters")
    ada = filled.accounts.users.by_name("ada")
    filled.accounts.project_members.transfer(number, ada.entity_id, CLI, T0)
    filled.ask("olga", "DELETE", "organisation/members/ada")
    housekeep(filled, 0)  # without a waiting period
    assert filled.metadata_store.runs.find("run-ada", filled.clock()) is None
    assert filled.metadata_store.runs.find("run-bob", filled.clock()) is not None
    filled.ask("olga", "POST", "teams", 409, json={"name": "ada"})


def test_sessions_invitations_memberships_and_events_end(filled: AccountsServer) -> None:
    accounts, bob = filled.accounts, filled.accounts.users.by_name("bob")
    accounts.sessions.create(bob.id, T0, SessionLife(), method="password")
    accounts.one_time_tokens.create("reset_password", T0, user_id=bob.id)
    accounts.invitations.create("vision", "new@example.net", "member", CLI, T0)
    accounts.members.set_end("vision", "bob", T0 + DAY, CLI, T0)
    accounts.emails.add(bob.id, "second@example.org", CLI, T0)
    housekeep(filled, 8)
    assert [row.state for row in accounts.invitations.all(pending=False)] == ["expired"]
    assert [row.name for row in accounts.members.of_team("vision")] == ["ada", "eve"]
    assert "team.member_expired" in filled.actions(entity="vision")
    assert len(accounts.emails.of_user(bob.id)) == 2
    housekeep(filled, 23)
    assert len(accounts.emails.of_user(bob.id)) == 1
    created = accounts.audit.page(AuditFilter(action="team.create"))
    assert created
    housekeep(filled, 410)
    assert accounts.audit.page(AuditFilter(action="team.create")) == []
    assert accounts.invitations.all(pending=False) == []


def test_a_store_without_accounts_is_left_alone(tmp_path: Path) -> None:
    with (
        SqliteChunks(str(tmp_path / "store")) as store,
        new_metadata_store(tmp_path / "metadata.db") as metadata_store,
    ):
        mailer = Mailer(metadata_store, SecretBox({"k": bytes(32)}), lambda: T0, {})
        policy = RetentionPolicy()
        Housekeeping(store, metadata_store, policy, lambda runs: None, lambda: T0, mailer).run_once()
        assert metadata_store.accounts.generation() == 0
