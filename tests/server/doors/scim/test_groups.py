"""SCIM groups, over HTTP."""

from __future__ import annotations

from tests.server.accounts_server import AccountsServer
from tests.server.doors.scim.provider import GROUP, Provider


def members(server: AccountsServer, team: str) -> dict[str, str]:
    return {row.name: row.role for row in server.accounts.members.of_team(team)}


def test_okta_pushes_a_group(provider: Provider) -> None:
    ada, eve = provider.create_user("ada"), provider.create_user("eve")
    body = {"schemas": [GROUP], "displayName": "Speech Lab", "members": [{"value": ada["id"]}]}
    group = provider.ask("POST", "Groups", 201, body)
    assert [member["value"] for member in group["members"]] == [ada["id"]]
    path = f"Groups/{group['id']}"
    provider.patch(path, {"op": "add", "path": "members", "value": [{"value": eve["id"], "display": "eve"}]})
    assert members(provider.server, "speech-lab") == {"ada": "member", "eve": "member"}
    provider.patch(path, {"op": "remove", "path": f'members[value eq "{ada["id"]}"]'})
    provider.patch(path, {"op": "replace", "value": {"id": group["id"], "displayName": "Speech"}})
    assert members(provider.server, "speech-lab") == {"eve": "member"}
    (resources,) = provider.ask("GET", "Groups", filter='displayName eq "speech"')["Resources"]
    assert resources["displayName"] == "Speech"
    provider.patch(path, {"op": "replace", "path": "members", "value": [{"value": ada["id"]}]})
    assert members(provider.server, "speech-lab") == {"ada": "member"}
    provider.ask("POST", "Groups", 409, {**body, "displayName": "speech lab"})
    provider.ask("DELETE", path, 204)
    provider.ask("GET", path, 404)


def test_entra_adds_and_removes_members_of_a_team_that_is_there(
    provider: Provider, server: AccountsServer
) -> None:
    ada = provider.create_user("ada")
    (team,) = provider.ask("GET", "Groups", filter='displayName eq "vision"')["Resources"]
    path = f"Groups/{team['id']}"
    provider.patch(path, {"op": "Add", "path": "members", "value": [{"$ref": None, "value": ada["id"]}]})
    provider.patch(path, {"op": "Add", "path": "members", "value": [{"value": ada["id"]}]})
    assert members(server, "vision") == {"ada": "member", "bob": "admin"}
    provider.patch(path, {"op": "Remove", "path": "members", "value": [{"value": ada["id"]}]})
    assert members(server, "vision") == {"bob": "admin"}
    unknown = {"op": "add", "path": "members", "value": [{"value": "999"}]}
    missing = provider.patch(path, unknown, status=400)
    assert missing["scimType"] == "invalidValue"


def test_a_group_keeps_the_role_and_the_last_administrator(
    provider: Provider, server: AccountsServer
) -> None:
    ada, bob = provider.create_user("ada"), server.accounts.users.by_name("bob")
    group = server.accounts.teams.by_name("vision").id
    body = {
        "schemas": [GROUP],
        "displayName": "vision",
        "members": [{"value": ada["id"]}, {"value": str(bob.id)}],
    }
    provider.ask("PUT", f"Groups/{group}", body=body)
    assert members(server, "vision") == {"ada": "member", "bob": "admin"}
    error = provider.ask("PUT", f"Groups/{group}", 409, {**body, "members": [{"value": ada["id"]}]})
    assert "needs an administrator" in error["detail"]
