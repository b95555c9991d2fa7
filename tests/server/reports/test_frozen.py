"""Frozen panels: a finished report does not change."""

from __future__ import annotations

from typing import Any

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.reports.frozen import NOT_FROZEN
from runvitals.server.reports.panel_runs import UNREADABLE
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import REPORTS, panel, publish, run_set
from tests.server.reports.runs import record_run


def data(server: AccountsServer, report: str, who: str = "eve", **how: Any) -> dict[str, Any]:
    answer: dict[str, Any] = server.ask(who, "GET", f"{report}/panels/panel1/data", **how)
    return answer


def freeze(server: AccountsServer, report: str, who: str = "bob") -> int:
    """Freeze a panel and publish it; returns the day."""
    frozen = server.ask(who, "POST", f"{report}/panels/panel1/freeze")
    server.ask(who, "POST", f"{report}/publish", json={"revision": frozen["revision"]})
    day: int = frozen["frozen_ms"]
    return day


def test_a_frozen_panel_stays_as_it_was(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    before = data(rates, report)
    day = freeze(rates, report)
    record_run(rates, "later", {"loss": [0.1]})
    rates.ask("bob", "DELETE", "runs/run-0")
    rates.clock.now_ms += 60_000
    frozen = data(rates, report)
    assert (frozen["frozen"], frozen["as_of_ms"]) == (True, day)
    assert (frozen["lines"], frozen["runs"]) == (before["lines"], before["runs"])
    thawed = rates.ask("bob", "DELETE", f"{report}/panels/panel1/freeze")
    assert data(rates, report)["frozen"]  # until it is published
    rates.ask("bob", "POST", f"{report}/publish", json={"revision": thawed["revision"]})
    today = data(rates, report)
    assert (today["frozen"], {run["id"] for run in today["runs"]}) == (False, {"later", "run-1", "run-2"})


def test_who_may_not_read_the_project_sees_no_frozen_values_of_it(rates: AccountsServer) -> None:
    songs = run_set(entity="audio", project="songs")
    rates.accounts.members.add("audio", "ada", "member", CLI, rates.clock())
    report = publish(rates, panel(), run_sets=[songs], by="ada")
    freeze(rates, report, "ada")
    assert len(data(rates, report, "ada")["runs"]) == 1
    for name in ("bob", "eve"):
        answer = data(rates, report, name)
        assert (answer["runs"], answer["lines"], answer["problem"]) == ([], {}, UNREADABLE)


def test_freezing_needs_the_right_to_edit(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    for name, status in (("eve", 403), ("mallory", 404)):
        rates.ask(name, "POST", f"{report}/panels/panel1/freeze", status)
        rates.ask(name, "DELETE", f"{report}/panels/panel1/freeze", status)
    rates.ask("bob", "POST", f"{report}/panels/panel2/freeze", 404)


def test_what_shows_nothing_cannot_be_frozen(rates: AccountsServer) -> None:
    report = publish(rates, panel(), run_sets=[run_set(entity="audio", project="songs")])
    assert UNREADABLE in rates.ask("bob", "POST", f"{report}/panels/panel1/freeze", 409)["error"]


def test_a_day_on_which_nothing_was_frozen(rates: AccountsServer) -> None:
    answer = data(rates, publish(rates, panel(frozen_ms=5)))
    assert (answer["problem"], answer["runs"], answer["frozen"]) == (NOT_FROZEN, [], True)


def test_a_copy_of_a_report_has_the_frozen_values(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    day = freeze(rates, report)
    copy = rates.ask("ada", "POST", f"{report}/duplicate", 201, json={})
    answer = data(rates, f"reports/{copy['id']}", "ada")
    assert (answer["as_of_ms"], answer["lines"]) == (day, data(rates, report)["lines"])
    assert rates.ask("ada", "GET", REPORTS)["total"] == 2
