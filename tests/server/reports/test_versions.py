"""The history of a report."""

from __future__ import annotations

from typing import Any

from runvitals.server.reports.storage.versions import KEPT_TO_MERGE
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create, text

MINUTE_MS = 60_000


def _save(server: AccountsServer, report: dict[str, Any], words: str, by: str = "bob") -> int:
    path = f"reports/{report['id']}"
    head = server.ask(by, "GET", f"{path}?draft=1")["revision"]
    blocks = [text("aaaa", words)]
    revision: int = server.ask(by, "PATCH", path, json={"revision": head, "blocks": blocks})["revision"]
    return revision


def _versions(server: AccountsServer, report: dict[str, Any]) -> list[tuple[int, str]]:
    answer = server.ask("bob", "GET", f"reports/{report['id']}/versions")
    return [(version["revision"], version["author"]) for version in answer["versions"]]


def test_saves_of_one_author_within_ten_minutes_are_one_version(digits: AccountsServer) -> None:
    report = create(digits)
    _save(digits, report, "two")
    digits.ask("bob", "POST", f"reports/{report['id']}/publish", json={"revision": 2})
    _save(digits, report, "three")
    _save(digits, report, "four", "ada")
    digits.clock.now_ms += 10 * MINUTE_MS
    _save(digits, report, "five", "ada")
    _save(digits, report, "six", "ada")
    assert _versions(digits, report) == [(6, "ada"), (4, "ada"), (3, "bob"), (2, "bob")]
    digits.ask("eve", "GET", f"reports/{report['id']}/versions", 403)


def test_an_older_version_is_restored_and_nothing_is_lost(digits: AccountsServer) -> None:
    report = create(digits)
    path = f"reports/{report['id']}"
    _save(digits, report, "two")
    restored = digits.ask("bob", "POST", f"{path}/versions/1/restore")
    assert (restored["revision"], restored["blocks"][0]["text"]) == (3, "# One")
    assert digits.ask("bob", "GET", f"{path}?revision=2")["blocks"][0]["text"] == "two"
    digits.ask("bob", "POST", f"{path}/versions/9/restore", 404)


def test_old_versions_that_the_history_does_not_show_are_removed(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    path = f"reports/{report['id']}"
    head = 1
    while head < KEPT_TO_MERGE + 10:
        blocks = [text("aaaa", str(head))]
        head = digits.ask("bob", "PATCH", path, json={"revision": head, "blocks": blocks})["revision"]
    digits.ask("bob", "GET", f"{path}?revision=1")  # it was published
    digits.ask("bob", "GET", f"{path}?revision=10", 404)
    digits.ask("bob", "GET", f"{path}?revision=11")
    stale = digits.ask("ada", "PATCH", path, 409, json={"revision": 10, "title": "Mine"})
    assert (stale["revision"], stale["conflicts"]) == (head, [])
    assert stale["current"]["blocks"][0]["text"] == str(head - 1)
