"""`/organisation/members`, keys, teams, names and settings, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer
from tests.server.teams.routes.test_members import in_pages

MEMBERS = "organisation/members"
DAY = 86_400_000


def test_the_list_of_users(vision: AccountsServer) -> None:
    listed = vision.ask("olga", "GET", MEMBERS)
    assert [row["name"] for row in listed["members"]] == ["ada", "bob", "eve", "mallory", "olga"]
    assert listed["members"][0] | {"created_ms": 0} == {
        "name": "ada",
        "display_name": "ada",
        "email": "ada@example.org",
        "org_role": "member",
        "access": "full",
        "billing_role": "none",
        "state": "active",
        "teams": ["vision"],
        "login_methods": [],
        "last_seen_ms": None,
        "created_ms": 0,
        "delete_after_ms": None,
    }
    assert "org:member_update" in listed["may"]
    assert [row["name"] for row in vision.ask("olga", "GET", f"{MEMBERS}?org_role=admin")["members"]] == [
        "olga"
    ]
    assert vision.ask("olga", "GET", f"{MEMBERS}?team=vision&text=BO")["total"] == 1
    vision.clock.now_ms += 200 * DAY
    assert vision.ask("olga", "GET", f"{MEMBERS}?state=inactive")["total"] == 5
    with vision.client("olga") as olga:
        lines = olga.get(f"{MEMBERS}?format=csv").text.splitlines()
    assert lines[:2] == [
        "user_name,email,role,access,teams,state,last_active",
        "ada,ada@example.org,member,full,vision,inactive,",
    ]
    for name, status in (("ada", 403), (None, 401)):
        vision.ask(name, "GET", MEMBERS, status)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("sort=org_role", ["olga", "ada", "bob", "eve", "mallory"]),
        ("sort=access&descending=true", ["mallory", "ada", "olga", "eve", "bob"]),
        ("sort=name&descending=true", ["olga", "mallory", "eve", "bob", "ada"]),
        ("sort=last_active&org_role=member", ["ada", "bob", "eve", "mallory"]),
    ],
)
def test_users_in_order(vision: AccountsServer, order: str, expected: list[str]) -> None:
    for name, access in (("mallory", "viewer"), ("ada", "none")):
        vision.ask("olga", "PATCH", f"{MEMBERS}/{name}", json={"access": access})
    assert in_pages(vision, "olga", f"{MEMBERS}?{order}") == expected


def test_a_billing_administrator_administers_the_organisation(vision: AccountsServer) -> None:
    for body in ({"billing_role": "admin"}, {"billing_role": "admin", "org_role": "member"}):
        response = vision.ask("olga", "PATCH", f"{MEMBERS}/bob", 409, json=body)
        assert response["error"] == (
            "bob is no administrator of the organisation, as billing administrators have to be"
        )
    both = {"billing_role": "admin", "org_role": "admin"}
    changed = vision.ask("olga", "PATCH", f"{MEMBERS}/bob", json=both)
    assert (changed["org_role"], changed["billing_role"]) == ("admin", "admin")


def test_changing_a_user(vision: AccountsServer) -> None:
    changed = vision.ask("olga", "PATCH", f"{MEMBERS}/bob", json={"access": "viewer", "org_role": "admin"})
    assert (changed["access"], changed["org_role"]) == ("viewer", "admin")
    assert vision.ask("bob", "GET", "teams/vision/members")  # still in the team
    assert vision.ask("olga", "PATCH", f"{MEMBERS}/bob", json={"state": "suspended"})["state"] == "suspended"
    vision.ask("olga", "PATCH", f"{MEMBERS}/bob", json={"state": "active"})
    for body in ({"org_role": "member"}, {"access": "none"}, {"state": "suspended"}):
        response = vision.ask("olga", "PATCH", f"{MEMBERS}/olga", 409, json=body)
        assert "your own" in response["error"]
    last = vision.ask("bob", "PATCH", f"{MEMBERS}/olga", 409, json={"billing_role": "none"})
    assert "last billing administrator" in last["error"]
    vision.ask("olga", "PATCH", f"{MEMBERS}/bob", 422, json={"access": "all"})
    vision.ask("olga", "PATCH", f"{MEMBERS}/nobody", 404, json={"access": "full"})
    vision.ask("ada", "PATCH", f"{MEMBERS}/bob", 403, json={"access": "full"})
    with vision.client("olga", sudo=False) as olga:
        assert olga.patch(f"{MEMBERS}/bob", json={"access": "full"}).status_code == 428
    assert vision.actions(outcome="ok")[-4:] == [
        "org.member_role",
        "org.member_access",
        "user.suspend",
        "user.reactivate",
    ]


def test_an_administrator_verifies_an_address_by_hand(vision: AccountsServer) -> None:
    vision.accounts.users.create("newcomer", CLI, T0, address="new@example.org")
    changed = vision.ask("olga", "PATCH", f"{MEMBERS}/newcomer", json={"state": "active"})
    assert changed["state"] == "active"
    assert "user.verify_by_admin" in vision.actions()


def test_deleting_a_user_names_the_teams_that_lack_an_administrator(vision: AccountsServer) -> None:
    vision.accounts.teams.create("own", CLI, T0, administrator=vision.accounts.users.by_name("ada").id)
    vision.ask("olga", "DELETE", f"{MEMBERS}/olga", 409)
    response = vision.ask("olga", "DELETE", f"{MEMBERS}/ada")
    assert response == {"teams_without_administrator": ["vision"]}
    vision.ask("olga", "DELETE", f"{MEMBERS}/ada", 404)
    teams = vision.ask("olga", "GET", "organisation/teams")["teams"]
    assert [(row["name"], row["without_administrator"], row["deleted_ms"] is None) for row in teams] == [
        ("own", False, False),
        ("vision", True, True),
    ]
    orphans = vision.ask("olga", "GET", "organisation/teams?without_administrator=true")["teams"]
    assert [row["name"] for row in orphans] == ["vision"]


def test_fifty_administrators_who_demote_each_other_leave_one(server: AccountsServer) -> None:
    names = [f"admin{number}" for number in range(50)]
    for name in names:
        server.user(name, org_role="admin")
    olga = server.accounts.users.by_name("olga").id
    server.accounts.users.update(server.accounts.users.by_name("admin0").id, CLI, T0, billing_role="admin")
    server.accounts.users.update(olga, CLI, T0, org_role="member")

    def demote(number: int) -> int:
        with server.client(names[number]) as client:
            path = f"{MEMBERS}/{names[(number + 1) % 50]}"
            return client.patch(path, json={"org_role": "member"}).status_code

    with ThreadPoolExecutor(16) as pool:
        statuses = set(pool.map(demote, range(50)))
    assert statuses <= {200, 403, 409}
    roles = [row.user.org_role for row in server.accounts.users.listed()]
    assert 1 <= roles.count("admin") < 50


def test_a_reset_link_to_pass_on(vision: AccountsServer) -> None:
    response = vision.ask("olga", "POST", f"{MEMBERS}/bob/reset")
    assert not response["sent"]  # no mail is configured
    url = response["url"]
    assert url.startswith("/-/reset#")
    token = vision.accounts.one_time_tokens.use(url.partition("#")[2], "reset_password", T0)
    assert token.user_id == vision.accounts.users.by_name("bob").id
    assert vision.actions()[-1] == "user.password_reset_link"


def test_all_keys(vision: AccountsServer) -> None:
    bob = vision.accounts.users.by_name("bob")
    secret, key = vision.accounts.keys.create("laptop", CLI, T0, user_id=bob.id)
    (listed,) = vision.ask("olga", "GET", "organisation/api-keys")["api_keys"]
    assert (listed["id"], listed["owner"], listed["owner_kind"]) == (key.public_id, "bob", "user")
    assert secret not in str(listed)
    vision.ask("bob", "GET", "organisation/api-keys", 403)
    vision.ask("olga", "DELETE", f"organisation/api-keys/{key.public_id}", 204)
    vision.ask("olga", "DELETE", "organisation/api-keys/unknown", 404)
    assert vision.accounts.keys.check(secret, T0) is None
    assert vision.ask("olga", "GET", "organisation/api-keys")["api_keys"] == []


def test_a_name_stays_taken_until_it_is_released(vision: AccountsServer) -> None:
    release = "organisation/names/{}/release"
    vision.ask("olga", "POST", release.format("vision"), 409)
    vision.ask("olga", "POST", release.format("nobody"), 404)
    vision.ask("ada", "POST", release.format("vision"), 403)
    vision.accounts.teams.delete("vision", CLI, T0)
    vision.ask("olga", "POST", release.format("vision"), 409)
    vision.accounts.teams.purge(vision.accounts.teams.by_name("vision").id, CLI, T0)
    vision.ask("olga", "POST", "teams", 409, json={"name": "vision"})
    vision.ask("olga", "POST", release.format("vision"))
    vision.ask("olga", "POST", "teams", 201, json={"name": "vision"})


def test_nothing_of_a_team_comes_back_with_its_name(vision: AccountsServer) -> None:
    accounts, digits = vision.accounts, "entities/vision/projects/digits"
    for name in ("digits", "old"):
        vision.ask("ada", "POST", "entities/vision/projects", 201, json={"name": name})
    vision.ask("ada", "PATCH", "entities/vision/projects/old", json={"name": "new"})
    link = vision.ask("ada", "POST", f"{digits}/links", 201, json={})["url"].partition("#")[2]
    team = accounts.teams.by_name("vision")
    robot = accounts.service_accounts.create("robot", team.id, CLI, T0)
    key, _ = accounts.keys.create("ci", CLI, T0, service_account_id=robot.id, scope="full")
    invited = {"people": ["new@example.net"]}
    (invitation,) = vision.ask("ada", "POST", "teams/vision/invitations", json=invited)["results"]
    accounts.teams.delete("vision", CLI, T0)
    for name in ("digits", "new"):
        accounts.owned_projects.purge(vision.metadata_store.projects.id(name), CLI, T0)
    accounts.teams.purge(team.id, CLI, T0)
    vision.ask("olga", "POST", "organisation/names/vision/release")
    vision.ask("olga", "POST", "teams", 201, json={"name": "vision"})
    vision.ask("olga", "POST", "entities/vision/projects", 201, json={"name": "digits"})
    vision.ask("ada", "GET", digits, 404)
    vision.ask("olga", "GET", "entities/vision/projects/old", 404)
    vision.ask(None, "GET", digits, 401, headers={"authorization": f"Bearer {key}"})
    token = {"token": invitation["url"].partition("#")[2]}
    vision.ask(None, "POST", "invitations/show", 410, json=token)
    assert vision.ask("olga", "GET", f"{digits}/links")["links"] == []
    assert vision.ask("olga", "GET", "teams/vision/service-accounts")["service_accounts"] == []
    vision.ask(None, "GET", "shared", 401, headers={"x-runvitals-link": link})


def test_settings(vision: AccountsServer) -> None:
    settings = vision.ask("olga", "GET", "organisation/settings")["settings"]
    assert settings["trash_days"] == {
        "value": 30,
        "default": 30,
        "editable": True,
        "enforced_by": None,
        "limits": [1, 365],
    }
    changed = vision.ask("olga", "PUT", "organisation/settings", json={"trash_days": 7, "signup": "open"})
    assert (changed["settings"]["trash_days"]["value"], changed["settings"]["signup"]["value"]) == (7, "open")
    invalid = {"trash_days": 0, "fly": 1, "signup": 1}
    wrong = vision.ask("olga", "PUT", "organisation/settings", 422, json=invalid)
    assert sorted(wrong["fields"]) == ["fly", "signup", "trash_days"]
    vision.ask("ada", "PUT", "organisation/settings", 403, json={"trash_days": 7})
    with vision.client("olga", sudo=False) as olga:
        assert olga.get("organisation/settings").status_code == 200
        assert olga.put("organisation/settings", json={"trash_days": 8}).status_code == 428
    assert vision.actions()[-1] == "org.settings"


@pytest.mark.parametrize("change", [{"org_role": "member"}, {"state": "suspended"}])
def test_invitations_end_with_the_rights_of_the_inviter(
    vision: AccountsServer, change: dict[str, str]
) -> None:
    vision.ask("olga", "PATCH", f"{MEMBERS}/ada", json={"org_role": "admin"})
    body = {"people": ["ada@example.net"], "org_role": "admin"}
    (invited,) = vision.ask("ada", "POST", "organisation/invitations", json=body)["results"]
    vision.ask("olga", "PATCH", f"{MEMBERS}/ada", json=change)
    token = {"token": invited["url"].partition("#")[2]}
    vision.ask("mallory", "POST", "invitations/accept", 410, json=token)
    assert vision.accounts.users.by_name("mallory").org_role == "member"


def test_who_sends_an_invitation_of_an_administrator_again(vision: AccountsServer) -> None:
    body = {"people": ["new@example.net"], "org_role": "admin"}
    (invited,) = vision.ask("olga", "POST", "organisation/invitations", json=body)["results"]
    path = f"organisation/invitations/{invited['id']}/resend"
    with vision.client("olga", sudo=False) as olga:
        assert olga.post(path, json={}).status_code == 428
    user = vision.accounts.users.by_name("olga")
    key, _ = vision.accounts.keys.create("laptop", CLI, T0, user_id=user.id, scope="full")
    headers = {"authorization": f"Bearer {key}"}
    vision.ask(None, "POST", path, 403, json={}, headers=headers)
    assert vision.ask("olga", "POST", path, json={})["state"] == "invited"


def test_inviting_to_the_organisation(vision: AccountsServer) -> None:
    body = {"people": ["new@example.net"], "org_role": "admin"}
    (result,) = vision.ask("olga", "POST", "organisation/invitations", json=body)["results"]
    assert result["state"] == "invited"
    vision.ask("ada", "POST", "organisation/invitations", 403, json=body)
    (own,) = vision.ask("ada", "POST", "organisation/invitations", json={"people": ["b@example.net"]})[
        "results"
    ]
    vision.ask("ada", "GET", "organisation/invitations", 403)
    vision.ask("ada", "DELETE", f"organisation/invitations/{result['id']}", 404)
    vision.ask("ada", "DELETE", f"organisation/invitations/{own['id']}", 204)
    listed = vision.ask("olga", "GET", "organisation/invitations")["invitations"]
    assert [(row["address"], row["org_role"], row["state"]) for row in listed] == [
        ("new@example.net", "admin", "pending"),
        ("b@example.net", "member", "revoked"),
    ]
    vision.accounts.settings.put({"team_admins_invite_new": False}, CLI, T0)
    vision.ask("ada", "POST", "organisation/invitations", 403, json={"people": ["c@example.net"]})


def test_settings_of_the_environment_are_locked(
    vision: AccountsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"url": "https://runs.example.org/", "name": "Lab"}
    vision.ask("olga", "PUT", "organisation/settings", json=body)
    for body in ({"url": "ftp://example.org"}, {"mail_from": "nobody"}, {"smtp_url": "http://a"}):
        vision.ask("olga", "PUT", "organisation/settings", 422, json=body)
    monkeypatch.setenv("RUNVITALS_URL", "https://other.example.org")
    monkeypatch.setenv("RUNVITALS_SMTP_URL", "smtps://user:hunter2@mail.example.org")
    with vision.client("olga") as olga:
        response = olga.get("organisation/settings")
    assert "hunter2" not in response.text
    settings = response.json()["settings"]
    assert settings["url"] == {
        "value": "https://other.example.org",
        "editable": False,
        "enforced_by": "RUNVITALS_URL",
        "default": "",
    }
    assert settings["smtp_url"]["value"] == "smtps://user:…@mail.example.org"
    answer = vision.ask("olga", "PUT", "organisation/settings", 409, json={"url": "https://runs.example.org"})
    assert "RUNVITALS_URL" in answer["error"]
