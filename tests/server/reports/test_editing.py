"""Who else is editing a report: noted for half a minute, for those who may edit it."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create


@pytest.fixture
def report(digits: AccountsServer) -> str:
    """The path of a report of bob, which mallory may edit too."""
    path = f"reports/{create(digits, publish=True)['id']}"
    digits.ask("bob", "PUT", f"{path}/shares/mallory", 204, json={"role": "edit"})
    return path


def editors(server: AccountsServer, name: str, report: str) -> list[str]:
    return [editor["name"] for editor in server.ask(name, "GET", f"{report}/editing")["editors"]]


def test_others_see_who_edits_until_it_is_over(digits: AccountsServer, report: str) -> None:
    assert digits.ask("bob", "PUT", f"{report}/editing") == {"revision": 1, "editors": []}
    assert digits.ask("mallory", "PUT", f"{report}/editing")["editors"][0]["name"] == "bob"
    assert editors(digits, "bob", report) == ["mallory"]
    digits.ask("mallory", "DELETE", f"{report}/editing", 204)
    assert editors(digits, "bob", report) == []
    assert editors(digits, "mallory", report) == ["bob"]
    digits.clock.now_ms += 30_000
    assert editors(digits, "mallory", report) == []


def test_only_who_may_edit_sees_and_says_it(digits: AccountsServer, report: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        digits.ask("eve", method, f"{report}/editing", 403)
        digits.ask(None, method, f"{report}/editing", 401)
    digits.ask("mallory", "PUT", f"{report}/editing")
    digits.ask("bob", "DELETE", f"{report}/shares/mallory", 204)
    for method in ("GET", "PUT", "DELETE"):
        digits.ask("mallory", method, f"{report}/editing", 404)


def test_editors_are_forgotten_with_their_account(digits: AccountsServer, report: str) -> None:
    digits.ask("mallory", "PUT", f"{report}/editing")
    mallory = digits.accounts.users.by_name("mallory")
    digits.accounts.users.delete(mallory.id, CLI, digits.clock())
    assert editors(digits, "bob", report) == []
