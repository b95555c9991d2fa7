"""SCIM users, over HTTP."""

from __future__ import annotations

import json

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0
from tests.server.doors.scim.provider import USER, Provider


def test_okta_looks_for_a_user_creates_and_changes_it(provider: Provider) -> None:
    search = {"filter": 'userName eq "ada@example.org"', "startIndex": "1", "count": "100"}
    assert provider.ask("GET", "Users", **search)["totalResults"] == 0
    created = provider.create_user("ada")
    assert created["userName"] == "ada@example.org"
    assert (created["externalId"], created["active"], created["displayName"]) == (
        "ext-ada",
        True,
        "Ada Example",
    )
    (resources,) = provider.ask("GET", "Users", **search)["Resources"]
    assert resources == created == provider.ask("GET", f"Users/{created['id']}")
    ada = provider.server.accounts.users.by_name("ada")
    assert (ada.state, ada.created_via) == ("active", "scim")
    assert provider.server.accounts.users.by_address("ada@example.org") == ada
    renamed = {"schemas": [USER], "userName": "ada@example.org", "displayName": "Ada L.", "active": True}
    assert provider.ask("PUT", f"Users/{created['id']}", body=renamed)["displayName"] == "Ada L."
    off = provider.patch(f"Users/{created['id']}", {"op": "replace", "value": {"active": False}})
    assert off["active"] is False
    assert provider.server.accounts.users.by_name("ada").state == "suspended"


def test_entra_suspends_by_a_text_and_a_path(provider: Provider) -> None:
    created = provider.create_user("ada")
    path = f"Users/{created['id']}"
    changed = provider.patch(
        path,
        {"op": "Replace", "path": "active", "value": "False"},
        {"op": "Add", "path": 'emails[type eq "work"].value', "value": "ada@example.org"},
        {"op": "Replace", "path": "displayName", "value": "Ada"},
        {"op": "Replace", "path": "userName", "value": "ada.l@example.org"},
    )
    assert (changed["active"], changed["displayName"], changed["userName"]) == (
        False,
        "Ada",
        "ada.l@example.org",
    )
    assert provider.patch(path, {"op": "Replace", "path": "active", "value": "True"})["active"]
    listed = provider.ask("GET", "Users", filter='externalId eq "ext-ada"')
    assert [row["id"] for row in listed["Resources"]] == [created["id"]]
    provider.ask("DELETE", path, 204)
    error = provider.ask("GET", path, 404)
    assert (error["schemas"], error["status"]) == (["urn:ietf:params:scim:api:messages:2.0:Error"], "404")


def test_a_user_who_is_there_already_is_found_by_address_and_not_created_twice(provider: Provider) -> None:
    (bob,) = provider.ask("GET", "Users", filter='userName eq "BOB@example.org"')["Resources"]
    assert bob["id"] == str(provider.server.accounts.users.by_name("bob").id)
    body = {"schemas": [USER], "userName": "bob@example.org", "active": True}
    clash = provider.ask("POST", "Users", 409, body)
    assert clash["scimType"] == "uniqueness"
    provider.patch(f"Users/{bob['id']}", {"op": "add", "path": "externalId", "value": "b-1"})
    assert provider.ask("GET", f"Users/{bob['id']}")["externalId"] == "b-1"


@pytest.mark.parametrize("via", ["open", "invitation", "scim"])
def test_nobody_gets_the_teams_of_another_by_choosing_a_name(provider: Provider, via: str) -> None:
    mallory = provider.server.accounts.users.create("carol", CLI, T0, address="m@example.net", via=via)
    assert provider.ask("GET", "Users", filter='userName eq "carol"')["totalResults"] == 0
    carol = provider.ask("POST", "Users", 201, {"schemas": [USER], "userName": "carol", "active": True})
    assert carol["id"] != str(mallory.id)
    (bob,) = provider.ask("GET", "Users", filter='userName eq "bob"')["Resources"]  # an administrator made it
    assert bob["id"] == str(provider.server.accounts.users.by_name("bob").id)


def test_two_users_of_the_same_local_part_get_different_names(provider: Provider) -> None:
    provider.create_user("ada")
    provider.create_user("ada", userName="ada@example.net", emails=[], externalId="2")
    names = {row.user.name for row in provider.server.accounts.users.listed()}
    assert {"ada", "ada-2"} <= names


def test_lists_come_in_pages(provider: Provider) -> None:
    page = provider.ask("GET", "Users", startIndex="2", count="1")
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (2, 2, 1)


def test_a_client_learns_what_is_kept_and_asks_for_parts_of_it(provider: Provider) -> None:
    for kind in ("Schemas", "ResourceTypes"):
        listed = provider.ask("GET", kind)["Resources"]
        assert {row["name"] for row in listed} == {"User", "Group"}
        assert [provider.ask("GET", f"{kind}/{row['id']}") for row in listed] == listed
        provider.ask("GET", f"{kind}/other", 404)
    ada = provider.create_user("ada")
    (schema,) = (row for row in provider.ask("GET", "Schemas")["Resources"] if row["name"] == "User")
    common = {"schemas", "id", "meta", "externalId"}
    assert ada.keys() - common == {attribute["name"] for attribute in schema["attributes"]}
    path = f"Users/{ada['id']}"
    provider.patch(path, {"op": "replace", "path": "name", "value": {"givenName": "Ada", "familyName": "L."}})
    full = provider.ask("GET", path)
    assert full["displayName"] == "Ada L."
    assert provider.patch(path, {"op": "remove", "path": "displayName"})["displayName"] == "ada"
    assert provider.ask("GET", path, excludedAttributes="emails, name.formatted").keys() == full.keys() - {
        "emails",
        "name",
    }
    (row,) = provider.ask(
        "GET", "Users", filter='userName eq "ada@example.org"', attributes=f"{USER}:active"
    )["Resources"]
    assert row.keys() == {"schemas", "id", "meta", "active"}


def test_what_is_not_valid_is_a_scim_error(provider: Provider) -> None:
    for status, method, path, body, kind in (
        (400, "POST", "Users", {"schemas": [USER]}, "invalidValue"),
        (400, "POST", "Users", ["no object"], "invalidSyntax"),
        (400, "POST", "Users", {"userName": "eve@example.org", "active": "perhaps"}, "invalidValue"),
        (400, "PATCH", "Users/1", {"Operations": [{"op": "fly", "path": "active"}]}, "invalidSyntax"),
        (404, "PATCH", "Users/999", {"Operations": []}, None),
        (404, "PATCH", f"Users/{10**20}", {"Operations": []}, None),
    ):
        error = provider.ask(method, path, status, body)
        assert error.get("scimType") == kind, path
    error = provider.ask("GET", "Users", 400, filter='userName co "a"')
    assert error["scimType"] == "invalidFilter"


def test_the_last_administrator_cannot_be_suspended(provider: Provider) -> None:
    olga = provider.server.accounts.users.by_name("olga")
    operation = {"op": "replace", "value": {"active": False}}
    error = provider.patch(f"Users/{olga.id}", operation, status=409)
    assert "last administrator" in error["detail"]
    provider.ask("DELETE", f"Users/{olga.id}", 409)


def test_only_the_secret_opens_it(provider: Provider) -> None:
    server = provider.server
    state = server.ask("olga", "GET", "organisation/scim-secret")
    assert (state["enabled"], state["created_ms"], state["path"]) == (True, T0, "/scim/v2")
    server.ask("bob", "POST", "organisation/scim-secret", 403)
    bob = server.accounts.users.by_name("bob")
    key, _ = server.accounts.keys.create("bob", CLI, server.clock(), user_id=bob.id, scope="full")
    for secret in (key, "guess"):
        provider.client.headers["authorization"] = f"Bearer {secret}"
        assert provider.ask("GET", "Users", 401)["status"] == "401"
    provider.client.headers["authorization"] = f"Bearer {provider.secret}"
    provider.ask("GET", "ServiceProviderConfig")
    provider.ask("GET", "ResourceTypes")
    server.ask("olga", "DELETE", "organisation/scim-secret", 204)
    provider.ask("GET", "Users", 401)
    assert provider.secret not in str(server.accounts.settings.all())
    assert server.actions()[-1] == "scim.secret_delete"


@pytest.mark.parametrize(("broken", "kept"), [("zoe\ud800", "zoe\ufffd"), ("zo\0e", "zo\u2400e")])
def test_a_name_that_no_database_can_store_is_kept_as_text(
    provider: Provider, broken: str, kept: str
) -> None:
    body = {"userName": broken, "externalId": broken, "emails": [{"value": "zoe@example.org"}]}
    created = provider.client.post("Users", content=json.dumps(body))
    assert created.status_code == 201, created.text
    assert (created.json()["userName"], created.json()["externalId"]) == (kept, kept)


def test_a_user_who_was_deleted_here_can_be_provisioned_again(provider: Provider) -> None:
    provider.create_user("ada")
    accounts = provider.server.accounts
    accounts.users.delete(accounts.users.by_name("ada").id, CLI, provider.server.clock())
    again = provider.create_user("ada")
    assert again["userName"] == "ada@example.org"
    assert accounts.users.by_name("ada-2").id == int(again["id"])


def test_the_last_request_of_the_provider_is_shown(provider: Provider) -> None:
    server = provider.server

    def last_used_ms() -> object:
        return server.ask("olga", "GET", "organisation/scim-secret")["last_used_ms"]

    assert last_used_ms() is None
    server.clock.now_ms += 1000
    provider.client.get("Users")
    assert last_used_ms() == T0 + 1000
    server.clock.now_ms += 59_000
    provider.client.get("Users")
    assert last_used_ms() == T0 + 1000, "noted once a minute: each note is a write"
    server.clock.now_ms += 1000
    provider.client.get("Users")
    assert last_used_ms() == T0 + 61_000
    server.ask("olga", "POST", "organisation/scim-secret", 201)
    assert last_used_ms() is None
    server.ask("olga", "DELETE", "organisation/scim-secret", 204)
    ended = server.ask("olga", "GET", "organisation/scim-secret")
    assert (ended["enabled"], ended["created_ms"]) == (False, None)


LONG = 200_000


@pytest.mark.parametrize(
    "text",
    [
        'userName eq "' + "a" * 600 + '"',
        "(" * 450,
        'userName eq "a" or ' * 20,
        'userName eq "a\\"',
        'not (userName eq "ada")',
        'userName eq "' + '\\"' * 200,
    ],
)
def test_filters_that_are_long_or_nested_are_rejected(provider: Provider, text: str) -> None:
    assert provider.ask("GET", "Users", 400, filter=text)["scimType"] in ("invalidFilter", "invalidSyntax")
    assert provider.ask("GET", "Groups", 400, filter=text)["scimType"] in ("invalidFilter", "invalidSyntax")


@pytest.mark.parametrize(
    "path",
    ["emails[" * LONG, 'emails[type eq "' + '"' * LONG, "a" * LONG, "." * LONG, 'm[value eq "' + "\\" * LONG],
)
def test_long_paths_of_changes_are_rejected(provider: Provider, path: str) -> None:
    user = provider.create_user("ada")
    for kind, number in (("Users", user["id"]), ("Groups", "1")):
        operations = [{"op": "replace", "path": path, "value": "x"}]
        response = provider.client.patch(f"{kind}/{number}", json={"Operations": operations})
        assert response.status_code in (200, 204, 400, 404, 413), response.text[:200]
    assert provider.ask("GET", f"Users/{user['id']}")["userName"] == user["userName"]
