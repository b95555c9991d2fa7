"""What a requester may do with each run, cursors of lists, and moves of runs."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.server.audit.storage.audit import AuditFilter
from tests.server.access.organisation import ServedOrganisation

EDITS = ["run:delete", "run:move", "run:stop", "run:update"]


def rows(served: ServedOrganisation, who: str, **params: Any) -> dict[str, dict[str, Any]]:
    response = served.ask(who, "GET", "/api/v1/runs", params={"limit": 1000, **params})
    assert response.status_code == 200, response.text
    return {row["id"]: row for row in response.json()["runs"]}


def test_each_row_says_what_the_requester_may_do_with_it(served: ServedOrganisation) -> None:
    assert rows(served, "bob")["team-bob"]["may"] == EDITS
    assert rows(served, "bob")["team-carol"]["may"] == ["run:update"]
    assert rows(served, "alice")["team-carol"]["may"] == [
        "run:delete",
        "run:move",
        "run:set_author",
        *EDITS[2:],
    ]
    assert rows(served, "vera")["team-bob"]["may"] == []
    assert rows(served, "ci")["team-ci"]["may"] == EDITS
    assert rows(served, "bob", deleted=True)["deleted-bob"]["may"] == ["run:delete"]
    detail = served.ask("carol", "GET", "/api/v1/runs/team-bob").json()
    assert detail["may"] == ["run:update"]


def test_each_requester_has_their_own_list(served: ServedOrganisation) -> None:
    assert "voice-otto" not in rows(served, "bob")
    assert set(rows(served, "otto")) == {
        "voice-otto",
        *(f"{level}-{name}" for level in ("organisation", "public", "open") for name in ("bob", "carol")),
    }
    assert not set(rows(served, "rita")) & {"team-bob", "voice-otto"}
    assert rows(served, "vera", deleted=True) == {}
    assert served.ask(None, "GET", "/api/v1/runs").status_code == 401


def test_a_cursor_is_for_whoever_got_it(served: ServedOrganisation) -> None:
    first = served.ask("bob", "GET", "/api/v1/runs", params={"limit": 2}).json()
    after = {"limit": 2, "after": first["next"]}
    second = served.ask("bob", "GET", "/api/v1/runs", params=after)
    assert second.status_code == 200
    assert {row["id"] for row in second.json()["runs"]}.isdisjoint(row["id"] for row in first["runs"])
    assert served.ask("carol", "GET", "/api/v1/runs", params=after).status_code == 422
    forged = {"limit": 2, "after": "A" * 16 + first["next"][16:]}
    assert served.ask("bob", "GET", "/api/v1/runs", params=forged).status_code == 422


@pytest.mark.parametrize(
    ("who", "project", "status"),
    [
        ("carol", "team", 200),  # where it is
        ("carol", "..", 403),  # somebody else's run
        ("bob", "..", 422),  # no address
        ("vera", "team", 403),
        ("carol", "new-of-carol", 403),  # somebody else's run
        ("bob", "public", 200),
        ("bob", "team", 200),  # back
        ("alice", "private", 404),  # bob's alone
        ("alice", "restricted", 404),
        ("otto", "voice", 404),
    ],
)
def test_moving_a_run_needs_the_right_to_it_and_to_the_project(
    served: ServedOrganisation, who: str, project: str, status: int
) -> None:
    response = served.ask(who, "PATCH", "/api/v1/runs/team-bob", json={"project": project})
    assert response.status_code == status, response.text


@pytest.mark.parametrize(
    ("who", "author", "status"),
    [
        ("alice", "bob", 200),
        ("alice", "vera", 200),
        ("alice", None, 200),
        ("alice", "otto", 422),
        ("alice", "nobody", 422),
        ("alice", "vision", 422),
        ("carol", "carol", 403),
        ("bob", "carol", 403),
        ("ci", "bob", 403),
        ("rita", "bob", 404),
        ("otto", "otto", 404),
    ],
)
def test_team_administrators_set_the_author_of_a_run(
    served: ServedOrganisation, who: str, author: str | None, status: int
) -> None:
    before = rows(served, "alice")["team-ci"]["author"]
    response = served.ask(who, "PATCH", "/api/v1/runs/team-ci", json={"author": author})
    assert response.status_code == status, response.text
    after = rows(served, "alice")["team-ci"]["author"]
    if status != 200:
        assert after == before
        return
    assert (after and after["name"]) == author
    event = served.accounts.audit.page(AuditFilter(action="run.set_author"))[0]
    assert (event.actor_name, event.entity, event.run, event.after) == (
        "alice",
        "vision",
        "team-ci",
        {"author": author},
    )
    cleared = served.ask("alice", "PATCH", "/api/v1/runs/team-ci", json={"author": None})
    assert cleared.status_code == 200
