"""Invitations, over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.teams.storage.invitations import AGAIN_MS
from tests.server.accounts_server import T0, AccountsServer

INVITATIONS = "teams/vision/invitations"
DAY = 86_400_000


def invite(server: AccountsServer, *people: str, by: str = "ada", **how: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = server.ask(by, "POST", INVITATIONS, json={"people": people, **how})[
        "results"
    ]
    return results


def token_of(result: dict[str, Any]) -> str:
    return str(result["url"]).partition("#")[2]


def test_people_by_address_and_by_name(vision: AccountsServer) -> None:
    results = invite(vision, "new@example.net", "mallory", "bob", "bob@example.org", "nobody", "a@b")
    assert [(row["who"], row["state"]) for row in results] == [
        ("new@example.net", "invited"),
        ("mallory", "invited"),
        ("bob", "already_member"),
        ("bob@example.org", "already_member"),
        ("nobody", "refused"),
        ("a@b", "refused"),
    ]
    assert results[0]["url"].startswith("/-/invitation#")  # no mail is configured
    again = invite(vision, "new@example.net", "mallory")
    assert [row["state"] for row in again] == ["already_invited", "already_invited"]
    changed = invite(vision, "new@example.net", role="viewer")
    assert changed[0]["state"] == "invited"
    listed = vision.ask("ada", "GET", INVITATIONS)
    assert [
        (row["address"], row["user"], row["role"], row["invited_by"]) for row in listed["invitations"]
    ] == [
        ("new@example.net", None, "viewer", "ada"),
        (None, "mallory", "member", "ada"),
    ]
    vision.ask("ada", "POST", INVITATIONS, 422, json={"people": []})
    vision.ask("ada", "POST", INVITATIONS, 422, json={"people": ["a@example.org"] * 51})
    vision.ask("bob", "GET", INVITATIONS, 403)


def test_whoever_has_the_link_sees_what_it_is_for(vision: AccountsServer) -> None:
    (result,) = invite(vision, "new@example.net", role="viewer")
    token = token_of(result)
    shown = vision.ask(None, "POST", "invitations/show", json={"token": token})
    assert (shown["team"], shown["role"], shown["invited_by"], shown["address"]) == (
        "vision",
        "viewer",
        "ada",
        "new@example.net",
    )
    vision.ask(None, "POST", "invitations/accept", 401, json={"token": token})
    unknown = vision.ask(None, "POST", "invitations/show", 410, json={"token": "guess"})
    assert "vision" not in unknown["error"]


def test_accepting_with_another_address_adds_the_invited_one(vision: AccountsServer) -> None:
    (result,) = invite(vision, "new@example.net")
    accepted = vision.ask("mallory", "POST", "invitations/accept", json={"token": token_of(result)})
    assert (accepted["state"], accepted["team"]) == ("accepted", "vision")
    mallory = vision.accounts.users.by_name("mallory")
    assert vision.accounts.users.by_address("new@example.net") == mallory
    assert vision.ask("mallory", "GET", "teams")["teams"][0]["role"] == "member"
    gone = vision.ask("eve", "POST", "invitations/accept", 410, json={"token": token_of(result)})
    assert "vision" not in gone["error"]
    assert vision.actions()[-1] == "team.invitation_accept"


def test_a_user_invited_by_name_needs_no_link(vision: AccountsServer) -> None:
    (result,) = invite(vision, "mallory")
    (offer,) = vision.ask("mallory", "GET", "account/invitations")["invitations"]
    assert vision.ask("bob", "GET", "account/invitations")["invitations"] == []
    vision.ask("bob", "POST", "invitations/accept", 410, json={"id": offer["id"]})
    vision.ask("bob", "POST", "invitations/accept", 410, json={"token": token_of(result)})
    vision.ask("mallory", "POST", "invitations/accept", json={"id": offer["id"]})
    assert "mallory" in {row.name for row in vision.accounts.members.of_team("vision")}


def test_declining_and_revoking(vision: AccountsServer) -> None:
    first, second = invite(vision, "mallory", "new@example.net")
    (offer,) = vision.ask("mallory", "GET", "account/invitations")["invitations"]
    vision.ask("mallory", "POST", "invitations/decline", json={"id": offer["id"]})
    vision.ask("mallory", "POST", "invitations/accept", 410, json={"token": token_of(first)})
    vision.ask("bob", "DELETE", f"{INVITATIONS}/{second['id']}", 403)
    vision.ask("ada", "DELETE", f"{INVITATIONS}/{second['id']}", 204)
    vision.ask("ada", "DELETE", f"{INVITATIONS}/{second['id']}", 410)
    vision.ask("ada", "DELETE", f"{INVITATIONS}/999", 404)
    vision.ask(None, "POST", "invitations/show", 410, json={"token": token_of(second)})
    states = [row["state"] for row in vision.ask("ada", "GET", INVITATIONS)["invitations"]]
    assert states == ["declined", "revoked"]


def test_an_invitation_expires_and_can_be_sent_again(vision: AccountsServer) -> None:
    (result,) = invite(vision, "new@example.net", expires_days=1)
    resend = f"{INVITATIONS}/{result['id']}/resend"
    vision.clock.now_ms += AGAIN_MS
    again = vision.ask("ada", "POST", resend)
    assert token_of(again) != token_of(result)
    vision.ask(None, "POST", "invitations/show", 410, json={"token": token_of(result)})
    vision.ask("ada", "POST", resend, 429)
    for _ in range(3):
        vision.clock.now_ms += AGAIN_MS
        vision.ask("ada", "POST", resend)
    vision.clock.now_ms += AGAIN_MS
    vision.ask("ada", "POST", resend, 429)
    vision.clock.now_ms += 8 * DAY
    assert vision.ask("ada", "GET", INVITATIONS)["invitations"][0]["state"] == "expired"
    vision.ask("ada", "POST", INVITATIONS, 422, json={"people": ["a@example.org"], "expires_days": 31})


def test_a_link_is_for_the_first_who_opens_it(vision: AccountsServer) -> None:
    (result,) = invite(vision, link=True)
    assert result["who"] == "anyone with the link"
    vision.ask("mallory", "POST", "invitations/accept", json={"token": token_of(result)})
    vision.ask("olga", "POST", "invitations/accept", 410, json={"token": token_of(result)})


def test_members_invite_where_the_team_lets_them_up_to_their_own_role(vision: AccountsServer) -> None:
    vision.ask("bob", "POST", INVITATIONS, 403, json={"people": ["new@example.net"]})
    vision.accounts.teams.update("vision", CLI, T0, members_invite=True)
    (result,) = invite(vision, "new@example.net", by="bob")
    vision.ask("bob", "POST", INVITATIONS, 403, json={"people": ["b@example.net"], "role": "admin"})
    vision.ask("eve", "POST", INVITATIONS, 403, json={"people": ["b@example.net"]})
    (invited,) = invite(vision, "ada@example.org", by="bob")
    assert invited["state"] == "invited"  # bob does not see whose address it is
    vision.ask("bob", "DELETE", f"{INVITATIONS}/{result['id']}", 204)


def test_limits_of_a_day(vision: AccountsServer) -> None:
    invite(vision, *(f"new{number}@example.net" for number in range(50)))
    vision.ask("ada", "POST", INVITATIONS, 429, json={"people": ["one@example.net"]})
    vision.clock.now_ms += DAY + 1
    invite(vision, "one@example.net")


def test_guesses_at_links_are_limited(vision: AccountsServer) -> None:
    (result,) = invite(vision, "new@example.net")
    with vision.client() as client:
        statuses = [
            client.post("invitations/show", json={"token": f"guess {number}"}).status_code
            for number in range(35)
        ]
        valid = client.post("invitations/show", json={"token": token_of(result)})
    assert statuses[:30] == [410] * 30
    assert statuses[-1] == 429
    assert valid.status_code == 200  # who guesses does not lock out others in the same network


def test_accounts_without_access_accept_nothing(vision: AccountsServer) -> None:
    (result,) = invite(vision, "mallory")
    mallory = vision.accounts.users.by_name("mallory")
    vision.accounts.users.update(mallory.id, CLI, T0, access="none")
    vision.ask("mallory", "POST", "invitations/accept", 403, json={"token": token_of(result)})


def test_an_inviter_who_is_removed_takes_the_invitations_along(vision: AccountsServer) -> None:
    vision.accounts.members.set_role("vision", "bob", "admin", CLI, T0)
    (result,) = invite(vision, "new@example.net", by="bob")
    vision.ask("ada", "PATCH", "teams/vision/members/bob", json={"role": "member"})
    vision.ask("mallory", "POST", "invitations/accept", 410, json={"token": token_of(result)})


def test_accepting_twice_at_once_makes_one_membership(vision: AccountsServer) -> None:
    (result,) = invite(vision, link=True)

    def accept(name: str) -> int:
        with vision.client(name) as client:
            return client.post("invitations/accept", json={"token": token_of(result)}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(accept, ["mallory"] * 4 + ["olga"] * 4))
    assert sorted(statuses) == [200] + [410] * 7
    joined = [row.name for row in vision.accounts.members.of_team("vision")]
    assert len(joined) == 4
