"""Where projects were before they were renamed or given to another team, and runs that several teams have."""

from __future__ import annotations

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.background.account_housekeeping import AccountHousekeeping
from runvitals.server.projects.storage.project_redirects import REDIRECT_MS
from tests.server.accounts_server import T0, AccountsServer
from tests.server.projects.routes.conftest import add_run

DIGITS = "entities/vision/projects/digits"
NUMBERS = "/api/v1/entities/vision/projects/n%2Am%20b"


@pytest.fixture
def renamed(digits: AccountsServer) -> AccountsServer:
    digits.ask("bob", "PATCH", DIGITS, json={"name": "n*m b"})
    return digits


@pytest.fixture
def given(digits: AccountsServer) -> AccountsServer:
    """The project belongs to the team speech now."""
    digits.accounts.teams.create("speech", CLI, T0, administrator=digits.accounts.users.by_name("ada").id)
    digits.ask("ada", "POST", f"{DIGITS}/transfer", json={"entity": "speech"})
    return digits


def answer(server: AccountsServer, name: str, method: str, path: str, **how: object) -> httpx.Response:
    with server.client(name) as client:
        return client.request(method, path, **how)  # type: ignore[arg-type]


def test_a_renamed_project_is_found_at_its_old_address(renamed: AccountsServer) -> None:
    moved = answer(renamed, "eve", "GET", DIGITS)
    assert (moved.status_code, moved.headers["location"]) == (307, NUMBERS)
    assert moved.json() == {
        "error": "the project is 'vision/n*m b' now",
        "entity": "vision",
        "project": "n*m b",
    }
    with renamed.client("eve") as client:
        assert client.get(DIGITS, follow_redirects=True).json()["name"] == "n*m b"
    members = answer(renamed, "ada", "GET", f"{DIGITS}/members?limit=5")
    assert members.headers["location"] == f"{NUMBERS}/members?limit=5"


def test_a_change_at_the_old_address_is_checked_at_the_new_one(renamed: AccountsServer) -> None:
    with renamed.client("eve") as viewer:
        change = viewer.patch(DIGITS, json={"description": "mine"}, follow_redirects=True)
    assert change.status_code == 403
    with renamed.client("bob") as owner:
        change = owner.patch(DIGITS, json={"description": "All digits"}, follow_redirects=True)
    assert (change.status_code, change.json()["description"]) == (200, "All digits")


def test_strangers_do_not_learn_where_a_project_is(renamed: AccountsServer) -> None:
    missing = renamed.ask("mallory", "GET", "entities/vision/projects/nobody", 404)["error"]
    hidden = renamed.ask("mallory", "GET", DIGITS, 404)["error"]
    assert hidden.replace("digits", "nobody") == missing
    renamed.ask(None, "GET", DIGITS, 401)


def test_an_old_address_works_for_ninety_days(renamed: AccountsServer) -> None:
    renamed.clock.now_ms += REDIRECT_MS - 1
    assert answer(renamed, "eve", "GET", DIGITS).status_code == 307
    AccountHousekeeping(renamed.accounts, renamed.app.services.account_services.mailer).remove_expired(
        renamed.clock()
    )
    assert answer(renamed, "eve", "GET", DIGITS).status_code == 307
    renamed.clock.now_ms += 1
    assert answer(renamed, "eve", "GET", DIGITS).status_code == 404


def test_a_new_project_under_the_old_name_has_the_address(renamed: AccountsServer) -> None:
    add_run(renamed, "later", "digits", "bob")
    assert renamed.ask("eve", "GET", DIGITS)["runs"] == 1
    renamed.ask("ada", "PATCH", DIGITS, json={"name": "others"})
    moved = answer(renamed, "eve", "GET", DIGITS)
    assert moved.headers["location"] == "/api/v1/entities/vision/projects/others"


def test_a_rename_by_the_older_call_leaves_an_address_too(digits: AccountsServer) -> None:
    digits.ask("bob", "PATCH", "projects/digits", json={"name": "numbers"})
    moved = answer(digits, "eve", "GET", DIGITS)
    assert moved.headers["location"] == "/api/v1/entities/vision/projects/numbers"


def test_a_project_and_its_runs_are_found_where_they_were_given(given: AccountsServer) -> None:
    moved = answer(given, "ada", "GET", DIGITS)
    assert moved.headers["location"] == "/api/v1/entities/speech/projects/digits"
    run = answer(given, "ada", "GET", "runs/run-bob/series?entity=vision&keys=cpu&keys=gpu.*")
    assert (run.status_code, run.json()["project"]) == (307, "digits")
    assert run.headers["location"] == "/api/v1/runs/run-bob/series?keys=cpu&keys=gpu.%2A&entity=speech"
    with given.client("ada") as client:
        assert client.get("runs/run-bob?entity=vision", follow_redirects=True).json()["entity"] == "speech"
    for path in (DIGITS, "runs/run-bob?entity=vision"):
        given.ask("bob", "GET", path, 404)


def test_an_id_that_several_teams_have_names_them(given: AccountsServer) -> None:
    add_run(given, "run-bob", "digits", "ada")
    clash = given.ask("ada", "GET", "runs/run-bob", 409)
    assert clash["entities"] == ["speech", "vision"]
    assert given.ask("ada", "GET", "runs/run-bob?entity=vision")["entity"] == "vision"
    assert given.ask("ada", "PATCH", "projects/digits", 409, json={"name": "x"})["entities"] == [
        "speech",
        "vision",
    ]
