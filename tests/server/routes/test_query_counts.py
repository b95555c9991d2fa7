"""How many queries lists take: as many for many rows as for few."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts_server import AccountsServer
from tests.server.projects.routes.conftest import add_run
from tests.server.request_statements import request_statements

MANY = 12


def add_users(server: AccountsServer, number: int) -> None:
    user = server.user(f"user-{number}")
    server.accounts.members.add("vision", user.name, "member", CLI, server.clock())
    server.accounts.keys.create("a", CLI, server.clock(), user_id=user.id)
    server.accounts.scim.put(user.entity_id, f"user-{number}@example.org", f"ext-{number}")


def add_teams(server: AccountsServer, number: int) -> None:
    now_ms, ada = server.clock(), server.accounts.users.by_name("ada")
    team = server.accounts.teams.create(f"team-{number}", CLI, now_ms, administrator=ada.id)
    account = server.accounts.service_accounts.create("ci", team.id, CLI, now_ms)
    server.accounts.keys.create("ci", CLI, now_ms, service_account_id=account.id, entities=[team.id])
    server.accounts.scim.put(team.id, None, f"team-{number}")


def add_roles(server: AccountsServer, number: int) -> None:
    server.accounts.roles.create(f"role-{number}", "viewer", ["run:update"], "", CLI, server.clock())


def add_projects(server: AccountsServer, number: int) -> None:
    add_run(server, f"run-{number}", f"project-{number}", "ada")


LISTS: list[tuple[str, Callable[[AccountsServer, int], None], int]] = [
    ("organisation/members", add_users, 8),
    ("organisation/api-keys", add_users, 9),
    ("organisation/api-keys", add_teams, 9),
    ("organisation/roles", add_roles, 6),
    ("organisation/teams", add_teams, 6),
    ("teams/vision/members", add_users, 10),
    ("entities/vision/projects", add_projects, 8),
    ("teams/vision/profile", add_projects, 14),
    ("account/api-keys", add_users, 9),
    ("teams", add_teams, 8),
]


@pytest.mark.parametrize(("path", "add", "most"), LISTS)
def test_a_list_takes_as_many_queries_for_many_rows(
    vision: AccountsServer, path: str, add: Callable[[AccountsServer, int], None], most: int
) -> None:
    who = "olga" if path.startswith("organisation") else "ada"
    add(vision, 0)
    few = queries(vision, who, path)
    for number in range(1, MANY):
        add(vision, number)
    many = queries(vision, who, path)
    assert 0 < len(many) <= len(few), "\n".join(many)
    assert len(many) <= most, "\n".join(many)


def queries(server: AccountsServer, who: str, path: str) -> list[str]:
    """The queries of a request: the fewest of several, because the cache of rights expires now and then."""
    params = {"limit": 200} if "profile" not in path else {}
    asked: list[list[str]] = []
    with server.client(who) as client:
        for _ in range(4):
            with request_statements() as statements:
                assert client.get(path, params=params).status_code == 200
            asked.append(statements)
    return min(asked, key=len)


@pytest.mark.parametrize(("path", "add"), [("Users", add_users), ("Groups", add_teams)])
def test_lists_of_scim(vision: AccountsServer, path: str, add: Callable[[AccountsServer, int], None]) -> None:
    secret = vision.ask("olga", "POST", "organisation/scim-secret", 201)["secret"]
    headers = {"authorization": f"Bearer {secret}"}

    def ask() -> list[str]:
        with request_statements() as statements:
            response = httpx.get(f"{vision.url}/scim/v2/{path}", headers=headers, timeout=PATIENCE_S)
        assert response.status_code == 200
        return statements

    add(vision, 0)
    few = ask()
    for number in range(1, MANY):
        add(vision, number)
    many = ask()
    assert 0 < len(many) <= len(few), "\n".join(many)
    assert len(many) <= 8, "\n".join(many)
