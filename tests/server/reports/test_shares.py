"""Reports that are shared with people by name, also outside the team."""

from __future__ import annotations

from typing import Any

from runvitals.server.reports.panel_runs import UNREADABLE
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import panel, publish, run_set


def share(server: AccountsServer, report: str, name: str, role: str, status: int = 204) -> None:
    server.ask("bob", "PUT", f"{report}/shares/{name}", status, json={"role": role})


def runs_of(server: AccountsServer, report: str, who: str) -> list[str]:
    answer = server.ask(who, "GET", f"{report}/panels/panel1/data")
    return [run["id"] for run in answer["runs"]]


def test_somebody_outside_the_team_sees_what_panels_show(rates: AccountsServer) -> None:
    songs = run_set(id="songs", entity="audio", project="songs")
    both = panel(run_sets=["runs", "songs"])
    report = publish(rates, both, run_sets=[run_set(filter="config.lr=0.3"), songs])
    rates.ask("mallory", "GET", report, 404)
    share(rates, report, "mallory", "view")
    shown = rates.ask("mallory", "GET", report)
    assert [right for right, may in shown["may"].items() if may] == ["comment", "follow"]
    assert "songs" not in str([run_set["project"] for run_set in shown["blocks"][0]["run_sets"]])
    answer = rates.ask("mallory", "GET", f"{report}/panels/panel1/data")
    assert ([run["id"] for run in answer["runs"]], answer["problem"]) == (["run-2"], UNREADABLE)
    assert rates.ask("mallory", "GET", "runs")["runs"] == []
    rates.ask("mallory", "GET", "runs/run-2", 404)
    assert rates.ask("mallory", "GET", "overlay/plan?runs=run-2")["runs"] == []
    rates.ask("mallory", "PATCH", report, 403, json={"revision": 1, "title": "x"})
    rates.ask("bob", "DELETE", f"{report}/shares/mallory", 204)
    rates.ask("mallory", "GET", report, 404)


def test_who_may_edit_needs_to_read_what_they_show(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    share(rates, report, "mallory", "edit")
    assert runs_of(rates, report, "mallory") == runs_of(rates, report, "bob")
    copy = rates.ask("mallory", "GET", f"{report}/panels/panel1/data", params={"draft": 1})
    assert (copy["runs"], copy["problem"]) == ([], UNREADABLE)  # the working copy: with one's own rights
    renamed = rates.ask("mallory", "PATCH", report, json={"revision": 1, "title": "Better"})
    rates.ask("mallory", "POST", f"{report}/publish", json={"revision": renamed["revision"]})
    blocks: list[dict[str, Any]] = renamed["blocks"]
    blocks[0]["panels"][0]["queries"] = [{"source": "logged", "name": "secret"}]
    more = rates.ask("mallory", "PATCH", report, json={"revision": 2, "blocks": blocks})
    refused = rates.ask("mallory", "POST", f"{report}/publish", 422, json={"revision": more["revision"]})
    assert "vision/digits" in refused["fields"]["revision"]
    rates.ask("bob", "POST", f"{report}/publish", json={"revision": more["revision"]})
    rates.ask("mallory", "DELETE", report, 403)
    rates.ask("mallory", "PUT", f"{report}/shares/eve", 403, json={"role": "view"})
    rates.ask("mallory", "POST", f"{report}/links", 403, json={})


def test_the_organisation_may_limit_people_to_looking(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    share(rates, report, "mallory", "edit")
    rates.ask("olga", "PATCH", "organisation/members/mallory", json={"access": "viewer"})
    rates.ask("mallory", "GET", report)
    rates.ask("mallory", "PATCH", report, 403, json={"revision": 1, "title": "x"})
    rates.ask("olga", "PATCH", "organisation/members/mallory", json={"access": "none"})
    rates.ask("mallory", "GET", report, 404)


def test_shares_are_listed_changed_and_recorded(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    for name in ("mallory", "eve"):
        share(rates, report, name, "view")
    share(rates, report, "eve", "edit")
    share(rates, report, "nobody", "view", 404)
    share(rates, report, "eve", "own", 422)
    listed = rates.ask("ada", "GET", f"{report}/shares")
    assert [(row["name"], row["role"]) for row in listed["shares"]] == [("eve", "edit"), ("mallory", "view")]
    rates.ask("eve", "PATCH", report, json={"revision": 1, "title": "Hers too"})
    rates.ask("eve", "GET", f"{report}/shares", 403)
    assert rates.actions().count("report.share") == 3
