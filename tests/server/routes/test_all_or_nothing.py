"""A request that changes several things changes all of them or none."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer
from tests.server.projects.routes.conftest import add_run

PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


def events(server: AccountsServer) -> int:
    return len(server.actions())


def test_a_role_and_an_end_of_which_one_is_refused(vision: AccountsServer) -> None:
    before = events(vision)
    wrong = {"role": "viewer", "expires_ms": T0 - 1}
    response = vision.ask("ada", "PATCH", "teams/vision/members/bob", 422, json=wrong)
    assert list(response["fields"]) == ["expires_ms"]
    assert vision.accounts.members.get("vision", "bob").role == "member"
    assert events(vision) == before
    changed = vision.ask("ada", "PATCH", "teams/vision/members/bob", json={**wrong, "expires_ms": T0 + 1})
    assert (changed["role"], changed["expires_ms"]) == ("viewer", T0 + 1)


def test_a_service_account_whose_subject_is_taken(vision: AccountsServer) -> None:
    issuer = vision.accounts.jwt_issuers.create("ci", "https://ci.example", "runvitals", CLI, T0)
    external = {"kind": "external", "issuer": issuer.url, "subject": "repo:digits"}
    accounts = "teams/vision/service-accounts"
    created = vision.ask("olga", "POST", accounts, 201, json={"name": "first", **external})
    assert (created["kind"], created["keys"]) == ("external", 0)
    assert "key" not in created
    assert vision.accounts.jwt_issuers.service_account(issuer.id, "repo:digits") is not None
    vision.ask("ada", "POST", accounts, 403, json={"name": "second", **external})
    before = events(vision)
    vision.ask("olga", "POST", accounts, 409, json={"name": "second", **external})
    assert [row["name"] for row in vision.ask("ada", "GET", accounts)["service_accounts"]] == ["first"]
    assert events(vision) == before
    for wrong, fields in (
        ({**external, "issuer": "https://other.example"}, ["issuer"]),
        ({**external, "subject": None}, ["subject"]),
        ({**external, "kind": "builtin"}, ["issuer", "subject"]),
    ):
        response = vision.ask("olga", "POST", accounts, 422, json={"name": "second", **wrong})
        assert list(response["fields"]) == fields
    vision.ask("ada", "DELETE", f"{accounts}/first", 204)
    vision.ask("olga", "POST", accounts, 201, json={"name": "second", **external})


def test_a_service_account_that_cannot_be_renamed_is_not_disabled(vision: AccountsServer) -> None:
    accounts = "teams/vision/service-accounts"
    for name in ("first", "second"):
        vision.ask("ada", "POST", accounts, 201, json={"name": name})
    vision.ask("ada", "PATCH", f"{accounts}/first", 409, json={"name": "second", "disabled": True})
    rows = vision.ask("ada", "GET", accounts)["service_accounts"]
    assert [(row["name"], row["disabled_ms"]) for row in rows] == [("first", None), ("second", None)]


def test_a_project_that_cannot_be_renamed_keeps_its_visibility(vision: AccountsServer) -> None:
    for number, name in enumerate(("digits", "letters")):
        add_run(vision, f"run-{number}", name, "ada")
    project, before = "entities/vision/projects/digits", events(vision)
    vision.ask("ada", "PATCH", project, 409, json={"name": "letters", "visibility": "public"})
    assert vision.ask("ada", "GET", project)["visibility"] == "team"
    assert events(vision) == before


def test_an_edit_of_a_run_whose_author_is_refused(vision: AccountsServer) -> None:
    add_run(vision, "run-0", "digits", "bob")
    before = events(vision)
    vision.ask("ada", "PATCH", "runs/run-0", 422, json={"notes": "new", "author": "mallory"})
    run = vision.ask("ada", "GET", "runs/run-0")
    assert (run["notes"], run["author"]["name"]) == ("", "bob")
    assert events(vision) == before
    vision.ask("ada", "PATCH", "runs/run-0", json={"notes": "new", "author": "eve"})
    run = vision.ask("ada", "GET", "runs/run-0")
    assert (run["notes"], run["author"]["name"]) == ("new", "eve")
    assert vision.actions()[before:] == ["run.set_author", "run.update"]


class TestScim:
    @pytest.fixture
    def client(self, vision: AccountsServer) -> Iterator[httpx.Client]:
        secret = vision.ask("olga", "POST", "organisation/scim-secret", 201)["secret"]
        headers = {"authorization": f"Bearer {secret}", "content-type": "application/scim+json"}
        url = f"{vision.url}/scim/v2/"
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S) as client:
            yield client

    def test_a_group_with_a_member_who_does_not_exist(
        self, vision: AccountsServer, client: httpx.Client
    ) -> None:
        before = events(vision)
        bob = str(vision.accounts.users.by_name("bob").id)
        body = {"displayName": "Speech", "members": [{"value": bob}, {"value": "999"}]}
        assert client.post("Groups", json=body).status_code == 400
        assert [row.name for row in vision.accounts.teams.all()] == ["vision"]
        assert events(vision) == before
        assert client.post("Groups", json={**body, "members": [{"value": bob}]}).status_code == 201
        assert [member.name for member in vision.accounts.members.of_team("speech")] == ["bob"]

    def test_a_patch_of_which_one_operation_is_refused(
        self, vision: AccountsServer, client: httpx.Client
    ) -> None:
        team = vision.accounts.teams.by_name("vision")
        before = events(vision)
        operations = [
            {"op": "replace", "path": "displayName", "value": "Images"},
            {"op": "add", "path": "members", "value": [{"value": "999"}]},
        ]
        body = {"schemas": [PATCH], "Operations": operations}
        assert client.patch(f"Groups/{team.id}", json=body).status_code == 400
        assert vision.accounts.teams.by_name("vision").display_name == "vision"
        assert events(vision) == before

    def test_a_user_with_a_state_that_is_none(self, vision: AccountsServer, client: httpx.Client) -> None:
        before = events(vision)
        body = {"userName": "new@example.org", "active": "maybe"}
        assert client.post("Users", json=body).status_code == 400
        assert events(vision) == before
        assert vision.accounts.users.by_address("new@example.org") is None
