"""`/teams/{team}/members`, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer

MEMBERS = "teams/vision/members"


def test_members_and_who_sees_their_addresses(vision: AccountsServer) -> None:
    listed = vision.ask("ada", "GET", MEMBERS)
    assert [(row["name"], row["role"], row["email"]) for row in listed["members"]] == [
        ("ada", "admin", "ada@example.org"),
        ("bob", "member", "bob@example.org"),
        ("eve", "viewer", "eve@example.org"),
    ]
    assert "member:update_role" in listed["may"]
    assert all("email" not in row for row in vision.ask("eve", "GET", MEMBERS)["members"])
    vision.ask("mallory", "GET", MEMBERS, 404)
    assert [row["name"] for row in vision.ask("ada", "GET", f"{MEMBERS}?role=viewer")["members"]] == ["eve"]
    assert [row["name"] for row in vision.ask("ada", "GET", f"{MEMBERS}?text=BO")["members"]] == ["bob"]
    vision.accounts.settings.put({"members_see_emails": True}, CLI, T0)
    assert vision.ask("eve", "GET", MEMBERS)["members"][0]["email"] == "ada@example.org"


def in_pages(server: AccountsServer, asker: str, path: str) -> list[str]:
    """The names of a list of members, page by page of two."""
    names: list[str] = []
    rest: str | None = ""
    while rest is not None:
        page = server.ask(asker, "GET", f"{path}&limit=2{rest}")
        names += [row["name"] for row in page["members"]]
        rest = None if page["next"] is None else f"&after={quote(page['next'])}"
    return names


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("sort=name", ["ada", "bob", "eve", "mia"]),
        ("sort=name&descending=true", ["mia", "eve", "bob", "ada"]),
        ("sort=role", ["eve", "bob", "mia", "ada"]),
        ("sort=role&descending=true", ["ada", "mia", "bob", "eve"]),
        ("sort=joined&descending=true", ["mia", "eve", "bob", "ada"]),
        ("sort=last_active", ["eve", "mia", "ada", "bob"]),
    ],
)
def test_members_in_order(vision: AccountsServer, order: str, expected: list[str]) -> None:
    vision.user("mia")
    vision.accounts.members.add("vision", "mia", "member", CLI, T0 + 1)
    users = vision.accounts.users
    for days, name in enumerate(("ada", "bob")):
        users.note_seen(users.by_name(name).id, T0 + days * 86_400_000)
    assert in_pages(vision, "bob", f"{MEMBERS}?{order}") == expected


def test_members_as_csv(vision: AccountsServer) -> None:
    user = vision.accounts.users.by_name("bob")
    vision.accounts.users.update(user.id, CLI, T0, display_name="=1+1")
    with vision.client("ada") as ada:
        response = ada.get(f"{MEMBERS}?format=csv")
    assert response.headers["content-type"].startswith("text/csv")
    lines = response.text.splitlines()
    assert lines[0].startswith("user_name,display_name,email,role")
    assert lines[2].startswith("bob,'=1+1,bob@example.org,member")
    vision.ask("eve", "GET", f"{MEMBERS}?format=csv", 403)


def test_roles(vision: AccountsServer) -> None:
    assert vision.ask("ada", "PATCH", f"{MEMBERS}/eve", json={"role": "member"})["role"] == "member"
    assert "project:create" in vision.ask("eve", "GET", "teams/vision")["may"]
    vision.accounts.roles.create("Labeller", "viewer", ["run:update"], "", CLI, T0)
    member = vision.ask("olga", "PATCH", f"{MEMBERS}/eve", json={"custom_role": "Labeller"})
    assert (member["role"], member["custom_role"]) == ("viewer", "Labeller")
    for body, field in (
        ({"custom_role": "nobody"}, "custom_role"),
        ({"custom_role": "admin"}, "custom_role"),
        ({"role": "Labeller"}, "role"),
        ({"role": "member", "custom_role": "Labeller"}, "custom_role"),
        ({"access": "full"}, "access"),
        ({"expires_ms": T0}, "expires_ms"),
    ):
        response = vision.ask("ada", "PATCH", f"{MEMBERS}/eve", 422, json=body)
        assert list(response["fields"]) == [field]
    vision.ask("bob", "PATCH", f"{MEMBERS}/eve", 403, json={"role": "viewer"})
    vision.ask("ada", "PATCH", f"{MEMBERS}/mallory", 404, json={"role": "viewer"})
    ends = vision.ask("ada", "PATCH", f"{MEMBERS}/eve", json={"expires_ms": T0 + 1000})
    assert ends["expires_ms"] == T0 + 1000


def test_removing_and_leaving(vision: AccountsServer) -> None:
    vision.ask("bob", "DELETE", f"{MEMBERS}/eve", 403)
    vision.ask("mallory", "DELETE", f"{MEMBERS}/eve", 404)
    vision.ask("ada", "DELETE", f"{MEMBERS}/bob", 204)
    vision.ask("bob", "GET", MEMBERS, 404)
    vision.ask("eve", "DELETE", f"{MEMBERS}/eve", 204)
    vision.ask("olga", "DELETE", f"{MEMBERS}/eve", 404)
    assert vision.actions()[-2:] == ["team.member_remove", "team.member_leave"]


def test_the_last_administrator_stays(vision: AccountsServer) -> None:
    for method, body in (("DELETE", None), ("PATCH", {"role": "viewer"})):
        response = vision.ask("ada", method, f"{MEMBERS}/ada", 409, json=body)
        assert "vision needs an administrator" in response["error"]
    vision.ask("ada", "PATCH", f"{MEMBERS}/bob", json={"role": "admin"})
    vision.ask("ada", "DELETE", f"{MEMBERS}/ada", 204)


def test_a_custom_role_that_removes_members_does_not_reach_administrators(vision: AccountsServer) -> None:
    vision.accounts.roles.create("Keeper", "member", ["member:remove"], "", CLI, T0)
    vision.accounts.members.set_role("vision", "bob", "Keeper", CLI, T0)
    vision.ask("bob", "DELETE", f"{MEMBERS}/ada", 403)
    vision.ask("bob", "DELETE", f"{MEMBERS}/eve", 204)


def test_an_administrator_of_the_organisation_joins_visibly(vision: AccountsServer) -> None:
    vision.ask("ada", "POST", "teams/vision/join", 403)
    vision.ask("mallory", "POST", "teams/vision/join", 404)
    joined = vision.ask("olga", "POST", "teams/vision/join", 201)
    assert (joined["name"], joined["role"]) == ("olga", "admin")
    vision.ask("olga", "POST", "teams/vision/join", 409)
    assert vision.actions()[-1] == "team.admin_joined"
    vision.ask("olga", "DELETE", f"{MEMBERS}/olga", 204)
    vision.accounts.settings.put({"admin_team_access": False}, CLI, T0)
    vision.ask("olga", "POST", "teams/vision/join", 403)


def test_administrators_of_the_organisation_do_not_let_each_other_in(vision: AccountsServer) -> None:
    """Where they may not join teams: neither by name, address, link, request or mail domain."""
    vision.accounts.settings.put({"admin_team_access": False}, CLI, T0)
    rita = vision.user("rita")
    vision.accounts.users.update(rita.id, CLI, T0, org_role="admin")
    vision.app.services.access.rights_changed()
    invitations, requests = "teams/vision/invitations", "teams/vision/join-requests"

    def invite(by: str, **body: object) -> dict[str, Any]:
        result: dict[str, Any] = vision.ask(by, "POST", invitations, json={"role": "viewer", **body})
        return dict(result["results"][0])

    by_name = invite("olga", people=["rita"])
    assert (by_name["state"], "its own members" in by_name["reason"]) == ("refused", True)
    for how in ({"people": ["rita@example.org"]}, {"link": True}):
        token = invite("olga", **how)["url"].partition("#")[2]
        refused = vision.ask("rita", "POST", "invitations/accept", 403, json={"token": token})
        assert "its own members" in refused["error"]
    created = vision.ask("rita", "POST", requests, 201, json={})
    vision.ask("olga", "POST", f"{requests}/{created['id']}/approve", 403, json={})
    vision.ask("rita", "DELETE", f"account/join-requests/{created['id']}", 204)
    vision.ask(
        "olga", "PATCH", "teams/vision", json={"join_domains": ["example.org"], "join_by_domain": "auto"}
    )
    assert vision.ask("rita", "POST", requests, 201, json={})["state"] == "pending"
    assert "rita" not in [member.name for member in vision.accounts.members.of_team("vision")]
    # The team's own administrator may.
    token = invite("ada", link=True)["url"].partition("#")[2]
    assert vision.ask("rita", "POST", "invitations/accept", json={"token": token})["state"] == "accepted"


def test_fifty_administrators_who_demote_each_other_leave_one(vision: AccountsServer) -> None:
    names = [f"admin{number}" for number in range(50)]
    for name in names:
        vision.user(name)
        vision.accounts.members.add("vision", name, "admin", CLI, T0)
    vision.accounts.members.set_role("vision", "ada", "member", CLI, T0)

    def demote(number: int) -> int:
        with vision.client(names[number]) as client:
            return client.patch(f"{MEMBERS}/{names[(number + 1) % 50]}", json={"role": "viewer"}).status_code

    with ThreadPoolExecutor(16) as pool:
        statuses = set(pool.map(demote, range(50)))
    assert statuses <= {200, 403, 409}
    roles = [row.role for row in vision.accounts.members.of_team("vision")]
    assert roles.count("admin") >= 1
    assert roles.count("viewer") > 1


def test_unknown_parameters_are_rejected(vision: AccountsServer) -> None:
    response = vision.ask("ada", "GET", f"{MEMBERS}?rol=viewer", 422)
    assert list(response["fields"]) == ["rol"]
    assert "expected one of after, descending, format" in response["error"]
