"""What guests get: where their link leads, and why it works no longer."""

from __future__ import annotations

from typing import Any

from runvitals.server.accounts.attempt_limits import WRONG_KEYS
from tests.server.accounts_server import AccountsServer

DIGITS = "entities/vision/projects/digits"
DAY = 86_400_000


def link(server: AccountsServer, path: str = DIGITS, **new: Any) -> tuple[int, dict[str, str]]:
    """The id of a new link, and the header that sends it."""
    body = server.ask("ada", "POST", f"{path}/links", 201, json=new)
    assert body["url"].startswith("/-/shared#")
    return body["id"], {"x-runvitals-link": body["url"].partition("#")[2]}


def test_a_link_says_where_it_leads(digits: AccountsServer) -> None:
    _, of_project = link(digits, expires_ms=digits.clock() + DAY)
    assert digits.ask(None, "GET", "shared", headers=of_project) == {
        "entity": "vision",
        "project": "digits",
        "run": None,
        "report": None,
        "expires_ms": digits.clock() + DAY,
    }
    _, of_run = link(digits, "runs/run-bob")
    assert digits.ask(None, "GET", "shared", headers=of_run)["run"] == "run-bob"
    digits.ask("bob", "PATCH", DIGITS, json={"name": "numbers"})
    assert digits.ask(None, "GET", "shared", headers=of_run)["project"] == "numbers"
    assert digits.ask("ada", "GET", "shared", headers=of_run)["run"] == "run-bob"


def test_a_link_that_works_no_longer_says_why(digits: AccountsServer) -> None:
    number, headers = link(digits, expires_ms=digits.clock() + DAY)
    _, short = link(digits, expires_ms=digits.clock() + 1)
    digits.ask("ada", "DELETE", f"{DIGITS}/links/{number}", 204)
    revoked = digits.ask(None, "GET", "shared", 401, headers=headers)
    assert revoked["error"] == "this link was revoked"
    digits.clock.now_ms += 1
    assert digits.ask(None, "GET", "shared", 401, headers=short)["error"] == "this link has expired"
    guessed = digits.ask(None, "GET", "shared", 401, headers={"x-runvitals-link": "guessed"})
    assert "never existed" in guessed["error"]
    digits.ask(None, "GET", "shared", 401)
    digits.ask("ada", "GET", "shared", 401)


def test_an_open_page_with_a_revoked_link_locks_nobody_out(digits: AccountsServer) -> None:
    number, headers = link(digits)
    digits.ask("ada", "DELETE", f"{DIGITS}/links/{number}", 204)
    for _ in range(WRONG_KEYS.free + 2):
        digits.ask(None, "GET", "shared", 401, headers=headers)
    digits.ask(None, "GET", "shared", 401, headers={"x-runvitals-link": "guessed"})


def test_a_link_to_what_was_deleted_says_so(digits: AccountsServer) -> None:
    _, headers = link(digits)
    digits.ask("ada", "DELETE", DIGITS, 202)
    assert "was deleted" in digits.ask(None, "GET", "shared", 410, headers=headers)["error"]
    digits.ask("ada", "POST", f"{DIGITS}/restore")
    digits.ask(None, "GET", "shared", headers=headers)


def test_a_guest_reads_and_changes_nothing(digits: AccountsServer) -> None:
    _, headers = link(digits)
    listed = digits.ask(None, "GET", "runs", headers=headers)
    assert {run["id"] for run in listed["runs"]} == {"run-ada", "run-bob"}
    assert all(run["may"] == [] for run in listed["runs"])
    for method, path, body in (
        ("PATCH", "runs/run-bob", {"notes": "x"}),
        ("DELETE", "runs/run-bob", None),
        ("PATCH", DIGITS, {"overview": "x"}),
        ("GET", f"{DIGITS}/links", None),
    ):
        digits.ask(None, method, path, 403, headers=headers, json=body)


def test_search_engines_keep_no_page_of_guests(digits: AccountsServer) -> None:
    with digits.client() as client:
        for path, expected in (("/-/shared", "noindex"), ("/-/shared/runs/run-bob", "noindex"), ("/", None)):
            response = client.get(f"{digits.url}{path}")
            if response.status_code != 503:  # the page was never built
                assert response.headers.get("x-robots-tag") == expected
