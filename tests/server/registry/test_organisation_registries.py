"""Registries of the organisation: who creates, reads, links and administers them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.access.organisation import NOW, OTHER_TEAM, TEAM
from tests.server.registry.conftest import Registries

OURS = "/api/v1/teams/organisation/registries"


def ask(registries: Registries, who: str | None, method: str, path: str = "", **how: Any) -> httpx.Response:
    return registries.served.ask(who, method, f"{OURS}{path}", **how)


@pytest.fixture(scope="module")
def ours(registries: Registries) -> Registries:
    """`approved`, which all may read and bob administers, with a version; `secret`, which members read.

    carol is a member of both.
    """
    assert ask(registries, "carol", "GET").json()["registries"] == []  # before there is any
    for body in ({"name": "approved"}, {"name": "secret", "visibility": "restricted"}):
        made = ask(registries, "rita", "POST", json=body)
        assert made.status_code == 201, made.text
        path = f"/{body['name']}/members/carol"
        assert ask(registries, "rita", "PUT", path, json={"role": "member"}).status_code == 204
    assert ask(registries, "rita", "PUT", "/approved/admins/bob").status_code == 204
    link = {"artifact": f"{TEAM}/team/weights", "version": "v0"}
    assert (
        ask(registries, "carol", "POST", "/approved/collections/faces/versions", json=link).status_code == 201
    )
    return registries


def names(ours: Registries, who: str, path: str = OURS) -> list[str]:
    response = ours.served.ask(who, "GET", path)
    assert response.status_code == 200, response.text
    return [row["name"] for row in response.json()["registries"]]


def test_all_read_what_is_open_and_members_the_rest(ours: Registries) -> None:
    for who in ("vera", "otto", "ci", "alice", "bob"):
        assert names(ours, who) == ["approved"]
        assert ask(ours, who, "GET", "/secret").status_code == 404
        file = ask(ours, who, "GET", "/approved/collections/faces/versions/latest/files/model.bin")
        assert (file.status_code, file.content) == (200, b"model 0")
    for who in ("carol", "rita"):
        assert names(ours, who) == ["approved", "secret"]
    for path in ("", "/approved"):
        assert ask(ours, None, "GET", path).status_code == 401
    assert set(names(ours, "otto", "/api/v1/registries")) >= {"approved"}
    detail = ask(ours, "carol", "GET", "/secret").json()
    assert (detail["entity"], detail["visibility"]) == ("organisation", "restricted")
    assert detail["may"] == ["registry:alias", "registry:download", "registry:link", "registry:read"]


def test_only_administrators_of_the_organisation_create(ours: Registries) -> None:
    for who in ("alice", "carol", "vera", "ci"):
        assert ask(ours, who, "POST", json={"name": "mine"}).status_code == 403
        assert ask(ours, who, "GET").json()["may"] in ([], ["registry:download", "registry:read"])
    assert ask(ours, None, "POST", json={"name": "mine"}).status_code == 401
    assert ask(ours, "rita", "POST", json={"name": "approved"}).status_code == 409
    team = ask(ours, "rita", "POST", json={"name": "mine", "visibility": "team"})
    assert (team.status_code, "organisation, restricted" in team.text) == (422, True)
    path = f"/api/v1/teams/{TEAM}/registries"
    sent = {"name": "mine", "visibility": "restricted"}
    assert ours.served.ask("alice", "POST", path, json=sent).status_code == 422


def test_who_changes_what(ours: Registries) -> None:
    """Each change by who may not, and by the narrowest role that may; readers get 403, others 404."""
    link = {"artifact": f"{TEAM}/team/weights", "version": "v1"}
    faces = "/approved/collections/faces"
    changes = (
        ("POST", f"{faces}/versions", link, "carol", ("vera", "otto", "alice", "ci")),
        ("PUT", f"{faces}/aliases/best", {"version": 1}, "carol", ("vera", "otto", "alice", "ci")),
        ("PATCH", faces, {"description": "x"}, "carol", ("vera", "otto")),
        ("PUT", "/approved/members/vera", {"role": "viewer"}, "bob", ("carol", "otto", "alice")),
        ("PUT", "/approved/admins/alice", None, "bob", ("carol", "otto", "vera")),
        ("DELETE", "/approved/admins/alice", None, "rita", ("carol", "otto", "vera")),
        ("PUT", "/approved/protected-aliases/gold", None, "bob", ("carol", "otto", "alice", "rita")),
        ("PUT", f"{faces}/aliases/gold", {"version": 0}, "bob", ("carol", "rita")),
        ("PATCH", "/approved", {"visibility": "restricted"}, "rita", ("carol", "otto")),
        ("PATCH", "/approved", {"visibility": "organisation"}, "bob", ("carol",)),
    )
    for method, path, body, allowed, refused in changes:
        for who in refused:
            answer = ask(ours, who, method, path, json=body)
            assert answer.status_code == 403, (who, method, path, answer.text)
        answer = ask(ours, allowed, method, path, json=body)
        assert answer.status_code < 300, (allowed, method, path, answer.text)
    history = ask(ours, "otto", "GET", f"{faces}/history").json()["changes"]
    told = [(row["action"], row["alias"], row["actor"]) for row in history]
    assert told[0] == ("registry.alias", "gold", "bob")
    assert told[-1] == ("registry.link", None, "carol")
    secret = "/secret/collections/faces/versions"
    for who, status in (("otto", 404), ("bob", 404), (None, 401)):
        assert ask(ours, who, "POST", secret, json=link).status_code == status
    # An account that may only look is a viewer in what it was added to.
    carol = ours.served.users["carol"]
    ours.served.accounts.users.update(carol, CLI, NOW, access="viewer")
    ours.served.rights_changed()
    assert ask(ours, "carol", "GET", "/secret").json()["may"] == ["registry:download", "registry:read"]
    assert ask(ours, "rita", "PUT", "/approved/admins/carol").status_code == 422
    ours.served.accounts.users.update(carol, CLI, NOW, access="full")
    ours.served.rights_changed()


def test_without_an_administrator_the_organisation_appoints_one(ours: Registries) -> None:
    assert ask(ours, "rita", "POST", json={"name": "orphan"}).status_code == 201
    ask(ours, "rita", "PUT", "/orphan/admins/bob")
    ask(ours, "bob", "PUT", "/orphan/protected-aliases/gold")
    ask(ours, "bob", "DELETE", "/orphan/admins/bob")
    ask(ours, "rita", "PUT", "/orphan/members/carol", json={"role": "member"})
    link = {"artifact": f"{TEAM}/team/weights", "aliases": ["gold"]}
    refused = ask(ours, "carol", "POST", "/orphan/collections/a/versions", json=link)
    assert (refused.status_code, "administrator of the organisation can" in refused.text) == (403, True)


def test_members_come_and_go(ours: Registries) -> None:
    assert ask(ours, "rita", "PUT", "/secret/members/vera", json={"role": "viewer"}).status_code == 204
    assert "secret" in names(ours, "vera")
    page = ask(ours, "vera", "GET", "/secret/members?limit=1").json()
    assert ([row["name"] for row in page["members"]], page["total"]) == (["carol"], 2)
    assert ask(ours, "vera", "PUT", "/secret/members/otto", json={"role": "viewer"}).status_code == 403
    assert ask(ours, "rita", "DELETE", "/secret/members/vera").status_code == 204
    assert ask(ours, "rita", "DELETE", "/secret/members/vera").status_code == 404
    assert "secret" not in names(ours, "vera")
    assert ask(ours, "rita", "PUT", "/secret/members/none", json={"role": "viewer"}).status_code == 422
    ours.ok("carol", "POST", json={"name": "ofteam"})
    path = f"/api/v1/teams/{TEAM}/registries/ofteam/members/otto"
    answer = ours.served.ask("alice", "PUT", path, json={"role": "viewer"})
    assert (answer.status_code, "those of its team" in answer.text) == (422, True)


def test_the_roles_of_teams_follow_their_members(ours: Registries) -> None:
    """In one that members read: alice administers the team, bob and carol are members, vera may only look."""
    assert ask(ours, "rita", "POST", json={"name": "ours", "visibility": "restricted"}).status_code == 201
    team = f"/ours/teams/{TEAM}"
    may = {who: set[str]() for who in ("alice", "bob", "vera", "ci", "otto")}

    def rights(role: str) -> dict[str, list[str]]:
        assert ask(ours, "rita", "PUT", team, json={"role": role}).status_code == 204
        found = {who: ask(ours, who, "GET", "/ours").json().get("may", []) for who in may}
        return {who: [name.removeprefix("registry:") for name in names] for who, names in found.items()}

    reads, links = ["download", "read"], ["alias", "download", "link", "read"]
    everything = ["alias", "download", "link", "manage_admins", "protected_alias", "read"]
    assert rights("viewer") == {"alice": reads, "bob": reads, "vera": reads, "ci": [], "otto": []}
    assert rights("member") == {"alice": links, "bob": links, "vera": reads, "ci": links, "otto": []}
    assert rights("admin") == {"alice": everything, "bob": everything, "vera": reads, "ci": links, "otto": []}
    listed = ask(ours, "vera", "GET", "/ours/teams").json()["teams"]
    assert [(row["name"], row["role"]) for row in listed] == [(TEAM, "admin")]
    # An own role counts where it is the higher one.
    ask(ours, "rita", "PUT", "/ours/members/vera", json={"role": "member"})
    assert rights("viewer")["vera"] == links
    ask(ours, "rita", "DELETE", "/ours/members/vera")
    # A protected alias: the error names the team, and its members decide.
    rights("admin")
    assert ask(ours, "bob", "PUT", "/ours/protected-aliases/gold").status_code == 204
    ask(ours, "rita", "PUT", "/ours/members/otto", json={"role": "member"})
    link = {"artifact": f"{OTHER_TEAM}/voice/nothing", "version": "v0"}
    assert ask(ours, "otto", "POST", "/ours/collections/a/versions", json=link).status_code == 404
    link = {"artifact": f"{TEAM}/team/weights", "version": "v0"}
    assert ask(ours, "carol", "POST", "/ours/collections/a/versions", json=link).status_code == 201
    refused = ask(ours, "otto", "PUT", "/ours/collections/a/aliases/gold", json={"version": 0})
    assert (refused.status_code, f"the team {TEAM} may change it" in refused.text) == (403, True)
    ask(ours, "rita", "DELETE", "/ours/members/otto")
    # Whoever leaves the team, or whose team leaves, has no role any more.
    ours.served.accounts.members.remove(TEAM, "carol", CLI, NOW)
    ours.served.rights_changed()
    assert ask(ours, "carol", "GET", "/ours").status_code == 404
    ours.served.accounts.members.add(TEAM, "carol", "member", CLI, NOW)
    ours.served.rights_changed()
    assert ask(ours, "otto", "PUT", team, json={"role": "viewer"}).status_code == 404
    for name in ("none", "carol", "organisation"):
        assert ask(ours, "rita", "PUT", f"/ours/teams/{name}", json={"role": "viewer"}).status_code == 422
    assert ask(ours, "alice", "DELETE", team).status_code == 204
    assert ask(ours, "alice", "GET", "/ours").status_code == 404
    assert ask(ours, "rita", "DELETE", team).status_code == 404
    audit = ours.served.ask("rita", "GET", "/api/v1/organisation/audit?action=registry.member_*").json()
    assert {"team": TEAM, "role": "admin"} in [row["after"] for row in audit["events"]]


def test_who_administers_a_registry_learns_of_no_hidden_team(ours: Registries) -> None:
    teams = ours.served.accounts.teams
    teams.update(OTHER_TEAM, CLI, NOW, hidden=True)
    ours.served.rights_changed()
    path = f"/approved/teams/{OTHER_TEAM}"
    hidden = ask(ours, "bob", "PUT", path, json={"role": "viewer"})
    unknown = ask(ours, "bob", "PUT", "/approved/teams/none", json={"role": "viewer"})
    assert hidden.json()["error"].replace(OTHER_TEAM, "none") == unknown.json()["error"]
    assert ask(ours, "rita", "PUT", path, json={"role": "viewer"}).status_code == 204
    assert ask(ours, "carol", "GET", "/approved/teams").json()["teams"] == []
    assert ask(ours, "bob", "GET", "/approved/teams").json()["total"] == 1  # it is in his registry
    assert ask(ours, "bob", "DELETE", path).status_code == 204
    teams.update(OTHER_TEAM, CLI, NOW, hidden=False)
    ours.served.rights_changed()


@pytest.mark.parametrize("who", ["rita", "alice", "vera"])
def test_the_organisation_is_no_team(ours: Registries, who: str) -> None:
    for method, path, body in (
        ("GET", "/api/v1/teams/organisation", None),
        ("GET", "/api/v1/teams/organisation/members", None),
        ("PATCH", "/api/v1/teams/organisation", {"display_name": "x"}),
        ("GET", "/api/v1/teams/organisation/projects", None),
        ("GET", "/api/v1/teams/organisation/notifications/1", None),
        ("GET", "/api/v1/teams/organisation/rules", None),
        ("POST", "/api/v1/entities/organisation/projects", {"name": "x"}),
        ("DELETE", "/api/v1/entities/organisation/projects/wandb-registry-approved", None),
        ("DELETE", "/api/v1/teams/organisation", {"confirm": "organisation"}),
    ):
        answer = ours.served.ask(who, method, path, json=body)
        assert answer.status_code in (403, 404), (method, path, answer.text)
    assert "organisation" not in str(ours.served.ask(who, "GET", "/api/v1/teams").json())
    with pytest.raises(ValueError, match="reserved"):
        ours.served.accounts.teams.create("organisation", by=None, now_ms=0)  # type: ignore[arg-type]
