"""`/entities/{entity}/projects`, over HTTP."""

from __future__ import annotations

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer
from tests.server.projects.routes.conftest import add_run

DIGITS = "entities/vision/projects/digits"
DAY = 86_400_000


def test_a_project_and_who_reads_it(digits: AccountsServer) -> None:
    project = digits.ask("eve", "GET", DIGITS)
    assert {name: project[name] for name in ("name", "entity", "visibility", "owner", "runs")} == {
        "name": "digits",
        "entity": "vision",
        "visibility": "team",
        "owner": "bob",
        "runs": 2,
    }
    assert "run:create" not in project["may"]
    assert {"run:create", "project:update"} <= set(digits.ask("bob", "GET", DIGITS)["may"])
    with digits.client("mallory") as mallory:
        hidden, missing = mallory.get(DIGITS), mallory.get(DIGITS.replace("digits", "nobody"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.text.replace("digits", "nobody") == missing.text
    listed = digits.ask("eve", "GET", "entities/vision/projects")["projects"]
    assert [(row["name"], row["runs"]) for row in listed] == [("digits", 2)]
    assert digits.ask("mallory", "GET", "entities/vision/projects")["projects"] == []
    assert digits.ask("eve", "GET", "teams/vision/profile")["projects"] == listed


def test_each_field_needs_a_right_of_its_own(digits: AccountsServer) -> None:
    assert digits.ask("ada", "PATCH", DIGITS, json={"overview": "# Digits"})["overview"] == "# Digits"
    digits.ask("eve", "PATCH", DIGITS, 403, json={"overview": "no"})
    changed = digits.ask("bob", "PATCH", DIGITS, json={"name": "numbers", "description": "All digits"})
    assert (changed["name"], changed["description"]) == ("numbers", "All digits")
    assert digits.ask("bob", "GET", "runs/run-bob")["project"] == "numbers"
    digits.ask("bob", "GET", DIGITS, 307)
    add_run(digits, "other", "letters", "ada")
    digits.ask("ada", "PATCH", "entities/vision/projects/letters", 409, json={"name": "numbers"})
    for body, field in (
        ({"name": "a/b"}, "name"),
        ({"name": ".."}, "name"),
        ({"name": ""}, "name"),
        ({"owner": "mallory"}, "owner"),
    ):
        response = digits.ask("ada", "PATCH", "entities/vision/projects/letters", 422, json=body)
        assert list(response["fields"]) == [field]
    digits.ask("bob", "PATCH", "entities/vision/projects/letters", 403, json={"description": "mine"})
    for owner in ("bob", None):
        named = digits.ask("ada", "PATCH", "entities/vision/projects/letters", json={"owner": owner})
        assert named["owner"] == owner


def test_a_project_is_created_for_a_member_of_the_team(digits: AccountsServer) -> None:
    projects = "entities/vision/projects"
    made = digits.ask("ada", "POST", projects, 201, json={"name": "a", "owner": "bob"})
    assert made["owner"] == "bob"
    assert digits.ask("bob", "POST", projects, 201, json={"name": "b"})["owner"] == "bob"
    refused = digits.ask("ada", "POST", projects, 422, json={"name": "c", "owner": "mallory"})
    assert list(refused["fields"]) == ["owner"]
    digits.ask("eve", "POST", projects, 403, json={"name": "d", "owner": "bob"})


def test_visibility_and_its_rules(digits: AccountsServer) -> None:
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": "public"})
    assert digits.ask("mallory", "GET", DIGITS)["visibility"] == "public"
    digits.ask("mallory", "PATCH", DIGITS, 403, json={"visibility": "team"})
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": "restricted"})
    digits.ask("mallory", "GET", DIGITS, 404)
    digits.ask("ada", "GET", DIGITS, 404)  # not added to it
    digits.ask("bob", "PATCH", DIGITS, 409, json={"visibility": "public"})
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": "team"})
    digits.accounts.teams.update("vision", CLI, T0, public_projects=False)
    blocked = digits.ask("bob", "GET", DIGITS)["blocked_visibilities"]
    assert blocked == dict.fromkeys(("public", "open"), "the team has switched public projects off")
    assert digits.ask("eve", "GET", DIGITS)["blocked_visibilities"] == {}
    refused = digits.ask("bob", "PATCH", DIGITS, 403, json={"visibility": "open"})
    assert refused["error"] == "the team has switched public projects off"
    assert digits.actions()[-2:] == ["project.set_visibility", "team.update_privacy"]
    rows = digits.ask("ada", "GET", "teams/vision/projects?fields=visibility")["projects"]
    assert rows == [{"name": "digits", "visibility": "team", "owner": "bob"}]
    digits.ask("bob", "GET", "teams/vision/projects?fields=visibility", 403)


def test_a_project_goes_to_the_trash_and_comes_back_with_its_runs(digits: AccountsServer) -> None:
    digits.ask("bob", "DELETE", DIGITS, 403)  # ada has a run in it
    digits.ask("ada", "DELETE", "runs/run-ada")
    response = digits.ask("ada", "DELETE", DIGITS, 202)
    assert (response["runs"], response["purged_ms"]) == (1, digits.clock() + 30 * DAY)
    digits.ask("eve", "GET", DIGITS, 404)
    assert digits.ask("ada", "GET", DIGITS)["deleted_ms"] == digits.clock()
    assert digits.ask("ada", "GET", "runs")["runs"] == []
    assert digits.ask("ada", "GET", "entities/vision/projects")["projects"] == []
    digits.ask("bob", "GET", "runs/run-bob", 404)
    digits.ask("eve", "POST", f"{DIGITS}/restore", 404)
    restored = digits.ask("ada", "POST", f"{DIGITS}/restore")
    assert (restored["runs"], restored["deleted_ms"]) == (2, None)
    digits.ask("ada", "POST", f"{DIGITS}/restore", 409)


def test_the_owner_of_all_runs_may_delete_the_project(digits: AccountsServer) -> None:
    add_run(digits, "only-bob", "own", "bob")
    number = digits.metadata_store.projects.id("own")
    digits.accounts.owned_projects.update(number, CLI, T0, owner_id=digits.accounts.users.by_name("bob").id)
    digits.ask("bob", "DELETE", "entities/vision/projects/own", 202)


def test_transfer_needs_both_sides_and_the_password(digits: AccountsServer) -> None:
    digits.accounts.teams.create("speech", CLI, T0, administrator=digits.accounts.users.by_name("eve").id)
    refused = digits.ask("ada", "POST", f"{DIGITS}/transfer", 403, json={"entity": "speech"})
    assert "needs the permission project:transfer for team or user 'speech'" in refused["error"]
    digits.accounts.members.add("speech", "ada", "admin", CLI, T0)
    with digits.client("ada", sudo=False) as ada:
        assert ada.post(f"{DIGITS}/transfer", json={"entity": "speech"}).status_code == 428
    moved = digits.ask("ada", "POST", f"{DIGITS}/transfer", json={"entity": "speech"})
    assert (moved["entity"], moved["owner"]) == ("speech", None)
    digits.ask("bob", "GET", "runs/run-bob", 404)
    assert digits.ask("ada", "GET", "runs/run-bob")["entity"] == "speech"
    own = digits.ask("ada", "POST", "entities/speech/projects/digits/transfer", json={"entity": "ada"})
    assert (own["entity"], own["owner"]) == ("ada", "ada")
    assert "project.transfer" in {
        event["action"] for event in digits.ask("ada", "GET", "teams/vision/audit")["events"]
    }
    digits.ask("ada", "POST", "entities/ada/projects/digits/transfer", 404, json={"entity": "nobody"})


def test_a_transfer_ends_guest_links_and_shares(digits: AccountsServer) -> None:
    digits.accounts.teams.create("speech", CLI, T0, administrator=digits.accounts.users.by_name("ada").id)
    report = f"reports/{digits.ask('ada', 'POST', f'{DIGITS}/reports', 201, json={'title': 'x'})['id']}"
    digits.ask("ada", "PUT", f"{report}/shares/bob", 204, json={"role": "edit"})
    digits.ask("bob", "GET", report)
    links = [
        digits.ask("ada", "POST", f"{address}/links", 201, json={}) for address in (DIGITS, "runs/run-bob")
    ]
    headers = [{"x-runvitals-link": link["url"].partition("#")[2]} for link in links]
    for header in headers:
        digits.ask(None, "GET", "runs/run-bob", headers=header)
    digits.ask("ada", "POST", f"{DIGITS}/transfer", json={"entity": "speech"})
    digits.ask("bob", "GET", report, 404)
    for header in headers:
        assert "was revoked" in digits.ask(None, "GET", "shared", 401, headers=header)["error"]
    # Those of one run end with its move to another team, not with a move within its team.
    link = digits.ask("ada", "POST", "runs/run-bob/links", 201, json={})
    only = {"x-runvitals-link": link["url"].partition("#")[2]}
    digits.ask("ada", "PATCH", "runs/run-bob", json={"project": "letters"})
    digits.ask(None, "GET", "runs/run-bob", headers=only)
    add_run(digits, "other", "words", "ada")
    digits.ask("ada", "POST", "runs/run-bob/move", json={"entity": "vision", "project": "words"})
    digits.ask(None, "GET", "shared", 401, headers=only)
    event = digits.ask("ada", "GET", "teams/speech/audit?action=link.create")["events"][0]
    assert (event["project"], event["run"], event["after"]) == ("digits", "run-bob", None)


def test_what_is_done_to_a_project_is_in_the_events_of_its_runs(digits: AccountsServer) -> None:
    digits.accounts.teams.create("speech", CLI, T0, administrator=digits.accounts.users.by_name("ada").id)
    add_run(digits, "gone", "digits", "ada")
    digits.ask("ada", "DELETE", "runs/gone")
    digits.clock.now_ms += 1000
    digits.ask("ada", "DELETE", DIGITS, 202)
    digits.ask("ada", "POST", f"{DIGITS}/restore")
    digits.ask("ada", "POST", f"{DIGITS}/transfer", json={"entity": "speech"})
    add_run(digits, "word", "words", "ada")
    digits.ask("ada", "POST", "runs/run-bob/move", json={"entity": "vision", "project": "words"})

    def events(run: str) -> list[tuple[str, str, str]]:
        found = digits.ask("ada", "GET", f"runs/{run}/events")
        return [(event["name"], event["text"], event["author"]["name"]) for event in found]

    both = [
        ("deleted", "Moved to the trash", "ada"),
        ("restored", "Restored from the trash", "ada"),
        ("moved", "Moved to speech/digits", "ada"),
    ]
    assert events("run-ada") == both
    assert events("run-bob") == [*both, ("moved", "Moved to vision/words", "ada")]
    digits.ask("ada", "PATCH", "runs/run-bob", json={"project": "letters", "notes": "x"})
    assert events("run-bob")[-2:] == [
        ("edited", "Changed: notes", "ada"),
        ("moved", "Moved to letters", "ada"),
    ]
    assert digits.actions(run="run-bob")[-2:] == ["run.update", "run.move"]
    digits.ask("ada", "POST", "runs/gone/restore")
    assert [name for name, _, _ in events("gone")] == ["deleted", "restored"]


def test_the_older_call_deletes_a_project_too(digits: AccountsServer) -> None:
    response = digits.ask("ada", "DELETE", "projects/digits")
    assert response == {"project": "digits", "done": "delete", "runs": 2}
    assert digits.actions()[-1] == "project.delete"
    assert digits.ask("ada", "GET", "runs")["runs"] == []
    digits.ask("ada", "POST", f"{DIGITS}/restore")
    assert [event["name"] for event in digits.ask("ada", "GET", "runs/run-bob/events")] == [
        "deleted",
        "restored",
    ]


def test_stars(digits: AccountsServer) -> None:
    digits.ask("eve", "PUT", f"{DIGITS}/star", 204)
    digits.ask("eve", "PUT", f"{DIGITS}/star", 204)
    assert digits.ask("eve", "GET", DIGITS)["starred"]
    assert not digits.ask("bob", "GET", DIGITS)["starred"]
    digits.ask("eve", "DELETE", f"{DIGITS}/star", 204)
    assert not digits.ask("eve", "GET", DIGITS)["starred"]
    digits.ask("mallory", "PUT", f"{DIGITS}/star", 404)


def test_a_key_that_may_only_read_sets_no_star(digits: AccountsServer) -> None:
    eve = digits.accounts.users.by_name("eve")
    statuses = {}
    for scope in ("ingest", "read", "write"):
        secret, _ = digits.accounts.keys.create(scope, CLI, T0, user_id=eve.id, scope=scope)
        with digits.client() as program:
            program.headers["authorization"] = f"Bearer {secret}"
            statuses[scope] = [
                program.request(method, f"{DIGITS}{path}").status_code
                for method, path in (("GET", ""), ("PUT", "/star"), ("DELETE", "/star"))
            ]
    assert statuses == {"ingest": [404, 404, 404], "read": [200, 403, 403], "write": [200, 204, 204]}


def test_members_of_a_restricted_project(digits: AccountsServer) -> None:
    digits.ask("bob", "PATCH", DIGITS, json={"visibility": "restricted"})
    members = f"{DIGITS}/members"
    assert [row["name"] for row in digits.ask("bob", "GET", members)["members"]] == ["bob"]
    added = digits.ask("bob", "POST", members, 201, json={"name": "eve"})
    assert (added["name"], added["role"]) == ("eve", None)
    assert "run:create" not in digits.ask("eve", "GET", DIGITS)["may"]  # a viewer stays one
    digits.ask("bob", "POST", members, 422, json={"name": "mallory"})
    digits.ask("eve", "POST", members, 403, json={"name": "ada"})
    digits.ask("bob", "DELETE", f"{members}/eve", 204)
    digits.ask("eve", "GET", DIGITS, 404)
    joined = digits.ask("ada", "POST", f"{DIGITS}/join", 201)
    assert joined["name"] == "ada"
    digits.ask("eve", "POST", f"{DIGITS}/join", 404)
    assert digits.ask("bob", "PATCH", f"{members}/ada", json={"role": "viewer"})["role"] == "viewer"
    assert "run:create" not in digits.ask("ada", "GET", DIGITS)["may"]
    digits.ask("ada", "POST", "teams/vision/service-accounts", 201, json={"name": "ci"})
    digits.ask("bob", "POST", members, 201, json={"name": "ci", "service_account": True})
    names = [(row["name"], row["service_account"]) for row in digits.ask("bob", "GET", members)["members"]]
    assert names == [("ada", False), ("bob", False), ("ci", True)]
    digits.ask("bob", "DELETE", f"{members}/ci?service_account=true", 204)


def test_links_for_visitors(digits: AccountsServer) -> None:
    link = digits.ask("ada", "POST", f"{DIGITS}/links", 201, json={"expires_ms": digits.clock() + DAY})
    header = {"x-runvitals-link": link["url"].partition("#")[2]}
    assert digits.ask(None, "GET", DIGITS, headers=header)["name"] == "digits"
    assert digits.ask(None, "GET", "runs/run-bob", headers=header)["project"] == "digits"
    digits.ask(None, "GET", DIGITS, 401)
    digits.ask("bob", "POST", f"{DIGITS}/links", 403, json={})
    of_run = digits.ask("ada", "POST", "runs/run-bob/links", 201, json={})
    only = {"x-runvitals-link": of_run["url"].partition("#")[2]}
    digits.ask(None, "GET", "runs/run-bob", headers=only)
    assert digits.ask(None, "GET", "runs/run-ada", 404, headers=only)
    listed = digits.ask("ada", "GET", "runs/run-bob/links")["links"]
    assert [row["id"] for row in listed] == [of_run["id"]]
    assert "url" not in listed[0]
    digits.ask("ada", "DELETE", f"{DIGITS}/links/{of_run['id']}", 404)
    digits.ask("ada", "DELETE", f"runs/run-bob/links/{of_run['id']}", 204)
    assert digits.ask(None, "GET", "runs/run-bob", 401, headers=only)
    digits.ask("olga", "PATCH", "teams/vision/privacy", json={"public_links": False})
    digits.ask(None, "GET", DIGITS, 401, headers=header)
    digits.ask("ada", "POST", f"{DIGITS}/links", 403, json={})


def test_whose_a_run_is_and_where(digits: AccountsServer) -> None:
    digits.ask("bob", "PATCH", "runs/run-ada", 403, json={"author": "bob"})
    digits.ask("ada", "PATCH", "runs/run-ada", json={"author": "bob"})
    assert digits.ask("bob", "GET", "runs/run-ada")["author"]["name"] == "bob"
    digits.accounts.teams.create("speech", CLI, T0, administrator=digits.accounts.users.by_name("bob").id)
    add_run(digits, "voice", "words", "bob", team="speech")
    location = {"entity": "speech", "project": "words"}
    digits.ask("eve", "POST", "runs/run-bob/move", 403, json=location)
    digits.ask("ada", "POST", "runs/run-bob/move", 404, json=location)
    digits.ask("bob", "POST", "runs/run-bob/move", json=location)
    moved = digits.ask("bob", "GET", "runs/run-bob")
    assert (moved["entity"], moved["project"], moved["author"]["name"]) == ("speech", "words", "bob")
    add_run(digits, "run-ada", "words", "olga", team="speech")
    clash = digits.ask("bob", "POST", "runs/run-ada/move?entity=vision", 409, json=location)
    assert clash["error"] == "speech already has a run 'run-ada'"


def test_defaults_for_clients(digits: AccountsServer) -> None:
    assert digits.ask("eve", "GET", "entities/vision/defaults") == {
        "code_saving": False,
        "visibility": "team",
    }
    assert digits.ask("eve", "GET", "entities/eve/defaults")["visibility"] == "team"
    digits.ask("mallory", "GET", "entities/vision/defaults", 404)


def test_a_transfer_does_not_show_which_teams_exist(digits: AccountsServer) -> None:
    digits.accounts.teams.create("hidden-one", CLI, T0, hidden=True)
    there, absent = (
        digits.ask("ada", "POST", f"{DIGITS}/transfer", 404, json={"entity": name})["error"]
        for name in ("hidden-one", "nobody")
    )
    assert there.replace("hidden-one", "?") == absent.replace("nobody", "?")


def test_a_project_does_not_show_its_members_beyond_the_team(digits: AccountsServer) -> None:
    link = digits.ask("ada", "POST", f"{DIGITS}/links", 201, json={})["url"].partition("#")[2]
    number = digits.metadata_store.projects.id("digits")
    digits.accounts.owned_projects.update(number, CLI, T0, visibility="organisation")
    digits.ask("eve", "GET", f"{DIGITS}/members")
    digits.ask("mallory", "GET", DIGITS)
    digits.ask("mallory", "GET", f"{DIGITS}/members", 403)
    headers = {"x-runvitals-link": link}
    digits.ask(None, "GET", DIGITS, headers=headers)
    digits.ask(None, "GET", f"{DIGITS}/members", 403, headers=headers)
