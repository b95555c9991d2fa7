"""The reports that pages of teams and users show."""

from __future__ import annotations

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create


def _pinned(server: AccountsServer, by: str | None, path: str) -> list[str]:
    return [report["title"] for report in server.ask(by, "GET", path)["pinned_reports"]]


def test_a_team_shows_its_best_reports_in_chosen_order(digits: AccountsServer) -> None:
    reports = [create(digits, title=title, publish=True)["id"] for title in ("One", "Two", "Three")]
    digits.ask("bob", "PATCH", "teams/vision/profile", 403, json={"pinned_reports": reports})
    chosen = [reports[2], reports[0]]
    page = digits.ask("ada", "PATCH", "teams/vision/profile", json={"pinned_reports": chosen})
    assert [report["title"] for report in page["pinned_reports"]] == ["Three", "One"]
    assert _pinned(digits, "eve", "entities/vision") == ["Three", "One"]
    digits.ask("bob", "DELETE", f"reports/{reports[0]}", 204)
    assert _pinned(digits, "eve", "teams/vision/profile") == ["Three"]
    digits.ask("ada", "PATCH", "teams/vision/profile", json={"intro": "Hello"})
    assert _pinned(digits, "eve", "teams/vision/profile") == ["Three"]
    digits.ask("ada", "PATCH", "teams/vision/profile", json={"pinned_reports": []})
    assert _pinned(digits, "eve", "teams/vision/profile") == []


def test_who_may_not_read_a_pinned_report_does_not_see_it(digits: AccountsServer) -> None:
    report = create(digits, publish=True)["id"]
    digits.ask("ada", "PATCH", "teams/vision/profile", json={"pinned_reports": [report]})
    assert _pinned(digits, "mallory", "teams/vision/profile") == []
    project = digits.metadata_store.projects.id("digits")
    digits.accounts.owned_projects.update(project, CLI, digits.clock(), visibility="public")
    assert _pinned(digits, "mallory", "teams/vision/profile") == ["Rates"]


def test_only_published_reports_of_the_team_are_pinned(digits: AccountsServer) -> None:
    draft = create(digits, "ada")["id"]
    for wrong in (draft, 10**9):
        body = {"pinned_reports": [wrong]}
        assert str(wrong) in str(digits.ask("ada", "PATCH", "teams/vision/profile", 422, json=body))
    digits.ask("ada", "PATCH", "teams/vision/profile", 422, json={"pinned_reports": list(range(1, 22))})


def test_a_user_shows_reports_that_they_may_read(digits: AccountsServer) -> None:
    report = create(digits, publish=True)["id"]
    digits.ask("mallory", "PATCH", "account/profile", 422, json={"pinned_reports": [report]})
    digits.ask("eve", "PATCH", "account/profile", json={"pinned_reports": [report]})
    assert _pinned(digits, "bob", "users/eve") == ["Rates"]
    assert _pinned(digits, "mallory", "users/eve") == []
