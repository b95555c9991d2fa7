"""Registries over HTTP: links, aliases, administrators, requests, and what is refused to whom."""

from __future__ import annotations

import httpx
import pytest

from runvitals.model.artifact_names import checked_alias
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from tests.patience import eventually
from tests.server.access.organisation import NOW, TEAM
from tests.server.access.specified_calls import logged_run
from tests.server.registry.conftest import Registries

DIGITS = "/models/collections/digits"


@pytest.fixture(scope="module")
def linked(registries: Registries) -> Registries:
    """The registry `models` with three versions of `weights` as `digits`; bob administers it."""
    registries.ok("carol", "POST", json={"name": "models", "description": "What is *served*"})
    for number in range(3):
        source = {"artifact": "team/weights", "version": f"v{number}"}
        registries.ok("carol", "POST", f"{DIGITS}/versions", json=source)
    registries.ok("alice", "PUT", "/models/admins/bob")
    return registries


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]


def test_a_registry_lists_its_collections_and_versions(linked: Registries) -> None:
    listed = linked.ok("vera", "GET")
    names = [(row["name"], row["collections"], row["versions"]) for row in listed["registries"]]
    assert (names, listed["total"]) == ([("models", 1, 3)], 1)
    (row,) = linked.ok("vera", "GET", "/models/collections")["collections"]
    assert (row["name"], row["newest"], row["aliases"], row["owner"]) == ("digits", 2, {"latest": 2}, "carol")
    page = linked.ok("vera", "GET", f"{DIGITS}/versions?limit=2")
    assert ([each["version"] for each in page["versions"]], page["next"]) == ([2, 1], "2")
    newest = page["versions"][0]
    assert newest["source"] == {"entity": TEAM, "project": "team", "name": "weights", "version": 2}
    assert (newest["author"], newest["run"], newest["run_project"]) == ("carol", "team-bob", "team")
    detail = linked.ok("vera", "GET", f"{DIGITS}/versions/latest")
    assert "<h2>Card 2</h2>" in detail["card_html"]
    assert "<script" not in detail["card_html"]
    assert detail["mlflow_name"] == "models.digits"


def test_files_are_read_and_downloads_counted_once_an_hour(linked: Registries) -> None:
    files = linked.ok("vera", "GET", f"{DIGITS}/versions/v1/files")
    assert [file["path"] for file in files["files"]] == ["README.md", "model.bin"]
    for _ in range(2):
        response = linked.ask("vera", "GET", f"{DIGITS}/versions/v1/files/model.bin")
        assert (response.status_code, response.content) == (200, b"model 1")
    assert linked.ask("vera", "GET", f"{DIGITS}/versions/v1/files/none").status_code == 404
    assert linked.ok("vera", "GET", f"{DIGITS}/versions/v1")["downloads"] == 1


def test_who_is_in_no_team_sees_nothing_until_the_registry_is_shared(linked: Registries) -> None:
    for path in ("/models", DIGITS, f"{DIGITS}/versions/v1/files/model.bin"):
        assert linked.ask("otto", "GET", path).status_code == 404
    shared = {"visibility": "organisation"}
    assert linked.ask("carol", "PATCH", "/models", json=shared).status_code == 403
    linked.ok("alice", "PATCH", "/models", json=shared)
    assert linked.ask("otto", "GET", f"{DIGITS}/versions/v1/files/model.bin").status_code == 200
    everywhere = linked.served.ask("otto", "GET", "/api/v1/registries").json()
    assert [row["name"] for row in everywhere["registries"]] == ["models"]
    link = {"artifact": f"{TEAM}/team/weights"}
    assert linked.ask("otto", "POST", f"{DIGITS}/versions", json=link).status_code == 403
    linked.ok("alice", "PATCH", "/models", json={"visibility": "team"})
    assert linked.ask("otto", "GET", "/models").status_code == 404


def test_a_protected_alias_is_moved_by_administrators_only_in_every_way(linked: Registries) -> None:
    linked.ok("bob", "PUT", "/models/protected-aliases/production")
    linked.ok("bob", "PUT", f"{DIGITS}/aliases/production", json={"version": 0})
    ways = (
        ("PUT", f"{DIGITS}/aliases/production", {"version": 1}),
        ("DELETE", f"{DIGITS}/aliases/production", None),
        ("DELETE", f"{DIGITS}/versions/0", None),
        ("DELETE", DIGITS, None),
        ("POST", f"{DIGITS}/versions", {"artifact": "team/weights", "aliases": ["production"]}),
    )
    for who in ("carol", "alice"):  # a member, and the administrator of the team
        for method, path, body in ways:
            status, text = error_of(linked.ask(who, method, path, json=body))
            assert (status, "protected: bob may change" in text) == (403, True), (who, method, path, text)
    status, text = error_of(linked.ask("alice", "DELETE", "/models"))
    assert (status, "protected: bob may change" in text) == (403, True)
    project = f"/api/v1/entities/{TEAM}/projects/wandb-registry-models"
    for who in ("alice", "bob", "rita"):  # not around it by the project that it is
        assert linked.served.ask(who, "DELETE", project).status_code in (403, 404)
        assert linked.served.ask(who, "PATCH", project, json={"name": "x"}).status_code in (403, 404)
    linked.ok("carol", "PUT", f"{DIGITS}/aliases/staging", json={"version": "v0"})
    assert linked.ok("carol", "GET", DIGITS)["aliases"] == {"latest": 2, "production": 0, "staging": 0}
    history = linked.ok("vera", "GET", f"{DIGITS}/history")["changes"]
    told = [(each["action"], each["alias"], each["version"], each["actor"]) for each in history]
    assert told[:2] == [
        ("registry.alias", "staging", 0, "carol"),
        ("registry.alias", "production", 0, "bob"),
    ]
    assert error_of(linked.ask("bob", "PUT", "/models/protected-aliases/latest"))[0] == 422


def test_a_request_is_discussed_and_decided(linked: Registries) -> None:
    linked.ok("bob", "PUT", "/models/protected-aliases/champion")
    asked = {"alias": "champion", "version": "v1", "text": "It is **better**."}
    assert linked.ask("vera", "POST", f"{DIGITS}/requests", json=asked).status_code == 403
    request = linked.ok("carol", "POST", f"{DIGITS}/requests", json=asked)
    assert (request["state"], request["may"]) == ("open", ["comment", "withdraw"])
    assert linked.ask("carol", "POST", f"{DIGITS}/requests", json=asked).status_code == 409
    path = f"/models/requests/{request['id']}"
    assert linked.ask("carol", "POST", f"{path}/approve", json={}).status_code == 403
    assert linked.ask("alice", "POST", f"{path}/approve", json={}).status_code == 403
    assert linked.ask("alice", "POST", f"{path}/withdraw", json={}).status_code == 403
    linked.ok("alice", "POST", f"{path}/comments", json={"text": "Which data?"})
    approved = linked.ok("bob", "POST", f"{path}/approve", json={"text": "Go."})
    assert (approved["state"], approved["closed_by"]) == ("approved", "bob")
    assert [row["author"] for row in approved["thread"]] == ["carol", "alice", "bob"]
    assert "<strong>better</strong>" in approved["thread"][0]["html"]
    assert linked.ok("vera", "GET", f"{DIGITS}/versions/champion")["version"] == 1
    assert linked.ask("bob", "POST", f"{path}/decline", json={}).status_code == 409
    table, users = linked.store.alerts.inbox, linked.served.users
    told = {
        name: [row.text.splitlines()[0] for row in table.notifications_of(users[name], 0, 50)]
        for name in ("bob", "carol", "alice")
    }
    asks = f"[{TEAM}/models] carol asks for the alias champion of digits v1"
    assert asks in told["bob"]
    assert f"[{TEAM}/models] bob approved the request for champion of digits v1" in told["carol"]
    assert told["alice"] == []  # who comments gets no notification of it


def test_a_request_needs_a_protected_alias_and_may_be_withdrawn(linked: Registries) -> None:
    free = {"alias": "free", "version": 1}
    assert linked.ask("carol", "POST", f"{DIGITS}/requests", json=free).status_code == 422
    linked.ok("bob", "PUT", "/models/protected-aliases/gold")
    request = linked.ok("carol", "POST", f"{DIGITS}/requests", json={"alias": "gold", "version": 1})
    path = f"/models/requests/{request['id']}"
    assert linked.ok("carol", "POST", f"{path}/withdraw", json={})["state"] == "withdrawn"
    waiting = linked.ok("vera", "GET", "/models/requests?state=open")
    assert (waiting["requests"], waiting["total"]) == ([], 0)
    assert linked.ask("vera", "GET", "/models/requests/99999").status_code == 404


def test_linking_out_of_a_restricted_project_needs_its_owner(linked: Registries) -> None:
    source = {"artifact": "restricted/secret"}
    path = "/models/collections/secrets/versions"
    assert linked.ask("carol", "POST", path, json=source).status_code == 404
    accounts = linked.served.accounts
    restricted = linked.store.projects.id("restricted")
    accounts.project_members.add(restricted, CLI, NOW, user_id=linked.served.users["carol"])
    linked.served.rights_changed()
    status, text = error_of(linked.ask("carol", "POST", path, json=source))
    assert (status, "only bob, alice may link" in text) == (403, True), text
    linked.ok("bob", "POST", path, json=source)  # the owner of the project
    version = linked.ok("vera", "GET", "/models/collections/secrets/versions/v0")
    assert (version["source"], version["run"]) == (None, None)  # vera may not know of the project
    read = linked.ask("vera", "GET", "/models/collections/secrets/versions/v0/files/model.bin")
    assert (read.status_code, read.content) == (200, b"secret weights")


def test_administrators_are_members_who_may_write(linked: Registries) -> None:
    status, text = error_of(linked.ask("alice", "PUT", "/models/admins/vera"))
    assert (status, "viewer" in text) == (422, True)
    assert linked.ask("alice", "PUT", "/models/admins/otto").status_code == 422
    assert linked.ask("carol", "PUT", "/models/admins/carol").status_code == 403
    linked.ok("bob", "PUT", "/models/admins/carol")
    assert linked.ok("vera", "GET", "/models")["admins"] == ["bob", "carol"]
    linked.ok("carol", "DELETE", "/models/admins/carol")
    linked.ok("alice", "PUT", "/models/admins/alice")  # one more step, which the audit log has
    linked.ok("alice", "DELETE", "/models/admins/alice")
    events = linked.served.accounts.audit.page(AuditFilter(action="registry.admin_*"), 10)
    told = [(event.action, event.actor_name, event.after or event.before) for event in events]
    assert told[:2] == [
        ("registry.admin_remove", "alice", {"user": "alice"}),
        ("registry.admin_add", "alice", {"user": "alice"}),
    ]


def test_the_last_administrator_may_go(linked: Registries) -> None:
    linked.ok("carol", "POST", json={"name": "empty"})
    linked.ok("alice", "PUT", "/empty/admins/bob")
    linked.ok("bob", "PUT", "/empty/protected-aliases/production")
    linked.ok("bob", "DELETE", "/empty/admins/bob")
    link = {"artifact": "team/weights", "aliases": ["production"]}
    status, text = error_of(linked.ask("carol", "POST", "/empty/collections/digits/versions", json=link))
    assert (status, "an administrator of the team can appoint one" in text) == (403, True)
    linked.ok("alice", "DELETE", "/empty")
    assert linked.ask("alice", "GET", "/empty").status_code == 404


def test_versions_and_collections_are_described_and_tagged(linked: Registries) -> None:
    body = {"description": "The *first*", "add_tags": ["kept"], "properties": {"acc": "0.9"}}
    changed = linked.ok("carol", "PATCH", f"{DIGITS}/versions/0", json=body)
    assert (changed["tags"], changed["properties"]) == (["kept"], {"acc": "0.9"})
    assert "<em>first</em>" in changed["description_html"]
    changed = linked.ok("carol", "PATCH", f"{DIGITS}/versions/0", json={"remove_tags": ["kept", "acc"]})
    assert (changed["tags"], changed["properties"]) == ([], {})
    detail = linked.ok("carol", "PATCH", DIGITS, json={"description": "Digits", "tags": ["vision"]})
    assert (detail["description"], detail["tags"]) == ("Digits", ["vision"])
    assert linked.ok("vera", "GET", "/models/collections?text=VISION")["total"] == 1
    assert linked.ok("vera", "GET", "/models/collections?text=speech")["total"] == 0
    for query, total in (("tag=vision&owner=carol", 1), ("tag=vis", 0), ("owner=otto", 0)):
        assert linked.ok("vera", "GET", f"/models/collections?{query}")["total"] == total, query
    linked.ok("carol", "PATCH", f"{DIGITS}/versions/1", json={"add_tags": ["kept"], "properties": {"k": "v"}})
    for query, numbers in (
        ("tag=kept", [1]),
        ("tag=k", [1]),
        ("tag=v", []),
        ("author=carol&sort=version", [0, 1, 2]),
        ("author=bob", []),
        ("sort=-bytes&limit=1&after=1", [1]),
    ):
        page = linked.ok("vera", "GET", f"{DIGITS}/versions?{query}")
        assert [row["version"] for row in page["versions"]] == numbers, query
    assert linked.ask("vera", "GET", f"{DIGITS}/versions?sort=nothing").status_code == 422


def test_a_registry_takes_some_types_has_another_name_and_is_sorted(linked: Registries) -> None:
    linked.ok("carol", "POST", json={"name": "narrow", "types": ["dataset", "dataset"]})
    link = {"artifact": "team/weights"}
    refused = error_of(linked.ask("carol", "POST", "/narrow/collections/a/versions", json=link))
    assert refused == (409, "the registry takes artifacts of the types dataset, not 'model'")
    assert linked.ask("carol", "PATCH", "/narrow", json={"types": []}).status_code == 403
    changed = linked.ok("alice", "PATCH", "/narrow", json={"types": ["model"], "name": "wide"})
    assert (changed["name"], changed["types"]) == ("wide", ["model"])
    linked.ok("carol", "POST", "/wide/collections/a/versions", json=link)
    assert linked.ask("alice", "PATCH", "/wide", json={"name": "models"}).status_code == 409
    assert linked.ask("vera", "GET", "/narrow").status_code == 404
    for sort in ("name", "-name"):
        names = [row["name"] for row in linked.ok("vera", "GET", f"?sort={sort}")["registries"]]
        assert names == sorted(names, reverse=sort == "-name")
    linked.ok("alice", "DELETE", "/wide")


@pytest.mark.parametrize("name", ["", "/", "a/b", "-x", "x" * 101, "a\u202eb"])
def test_names_that_no_registry_can_have(linked: Registries, name: str) -> None:
    assert linked.ask("carol", "POST", json={"name": name}).status_code == 422


@pytest.mark.parametrize("alias", ["production\u200b", "\u202enoitcudorp", " production", "pro\u00a0duction"])
def test_no_alias_looks_like_a_protected_one(alias: str) -> None:
    with pytest.raises(ValueError, match="expected no invisible characters"):
        checked_alias(alias)
    assert checked_alias("best so far") == "best so far"


def test_a_registry_is_no_project(linked: Registries) -> None:
    home = linked.served.ask("carol", "GET", f"/api/v1/teams/{TEAM}/projects").json()
    assert not [row["name"] for row in home["projects"] if row["name"].startswith("wandb-registry-")]
    named = {"name": "wandb-registry-mine"}
    projects = f"/api/v1/entities/{TEAM}/projects"
    assert linked.served.ask("carol", "POST", projects, json=named).status_code == 422
    assert linked.served.ask("alice", "PATCH", f"{projects}/team", json=named).status_code == 422
    for project in ("wandb-registry-mine", "wandb-registry-models"):
        run = logged_run(project, TEAM)
        assert linked.served.ask("carol", "POST", "/api/v1/ingest", json=run).status_code == 403


def test_automations_react_to_links_aliases_and_requests(linked: Registries) -> None:
    team = f"/api/v1/teams/{TEAM}/automations"
    mail = {"kind": "mail", "members": ["alice"]}
    events = (
        {"kind": "registry.link", "collection": "^watched$"},
        {"kind": "artifact.alias", "alias": "^fresh$"},
        {"kind": "registry.request", "alias": "^watched-gold$"},
    )
    for event in events:
        new = {"name": event["kind"], "event": event, "actions": [mail]}
        assert linked.served.ask("alice", "POST", team, json=new).status_code == 201
    path = "/models/collections/watched"
    linked.ok("carol", "POST", f"{path}/versions", json={"artifact": "team/weights", "aliases": ["fresh"]})
    linked.ok("bob", "PUT", "/models/protected-aliases/watched-gold")
    linked.ok("carol", "POST", f"{path}/requests", json={"alias": "watched-gold", "version": 0})
    team_id = linked.served.accounts.teams.by_name(TEAM).id

    def texts() -> list[str]:
        return [row.text.splitlines()[0] for row in linked.store.alerts.outbox.of_team(team_id, 50)]

    def said(*parts: str) -> bool:
        return any(all(part in text for part in parts) for text in texts())

    eventually(lambda: said("was linked to watched"))
    eventually(lambda: said("watched", "has the alias fresh"))
    eventually(lambda: said("carol asks for the alias watched-gold"))
