"""Findings show nothing of runs that one may not read: not in filters, orders, counts, sums, alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from runvitals.findings.finding import RULES_VERSION, Finding, Findings
from runvitals.model.durations import HOUR_MS
from runvitals.model.run_verdict import FINDING_IDS
from runvitals.server.findings.kept_result import JudgedRun
from tests.server.access.organisation import (
    NOW,
    OTHER_TEAM,
    TEAM,
    VISIBILITIES,
    ServedOrganisation,
    served_organisation,
)

IDLE = Finding(
    id="idle",
    severity="warning",
    confidence="certain",
    from_ms=NOW - 2 * HOUR_MS,
    to_ms=None,
    share=1.0,
    hosts=("node1",),
    devices=(),
    ranks=(),
    text="",
    evidence=(),
    device_hours=0.0,
    advice="",
    docs="",
)
EVERYONE = frozenset(("organisation", "public", "open"))
OF_TEAM = EVERYONE | {"team"}
PROJECTS: Mapping[str | None, frozenset[str]] = {
    "rita": EVERYONE,
    "alice": OF_TEAM,
    "bob": OF_TEAM | {"private", "restricted"},
    "carol": OF_TEAM,
    "vera": OF_TEAM,
    "otto": EVERYONE | {"voice"},
    "ci": OF_TEAM,
}
"""The projects whose runs each may read."""


def cause_of(project: str) -> str:
    """What the runs of a project lost time to: another finding in each."""
    return FINDING_IDS[(*VISIBILITIES, "voice").index(project)]


def hours_of(project: str) -> float:
    """What each of them lost: sums tell which projects are in them."""
    return float(10 ** (*VISIBILITIES, "voice").index(project))


def project_of(uid: str) -> str:
    return "team" if uid in ("deleted-bob", "team-ci") else uid.partition("-")[0]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """The organisation, every run of it with a finding that goes on."""
    with served_organisation(tmp_path_factory.mktemp("judged")) as served:
        for uid in all_runs(served):
            keep(served, uid)
        yield served


def all_runs(served: ServedOrganisation) -> dict[str, int]:
    names = [f"{level}-{name}" for level in VISIBILITIES for name in ("bob", "carol")]
    runs = {}
    for uid in (*names, "team-ci", "voice-otto"):
        run = served.metadata_store.runs.find(uid, NOW)
        assert run is not None
        runs[uid] = run.id
    return runs


def keep(served: ServedOrganisation, uid: str) -> None:
    project = project_of(uid)
    finding = replace(IDLE, id=cause_of(project), text=f"Found in {uid}.", device_hours=hours_of(project))
    run_id = all_runs(served)[uid]
    verdict = Findings(finding.id, finding.text, [finding])
    times = (NOW, NOW - 2 * HOUR_MS, NOW)
    served.served.app.services.findings.keep(JudgedRun(run_id, RULES_VERSION, *times, False, verdict, 1e9))


def readable(served: ServedOrganisation, who: str | None) -> set[str]:
    return {uid for uid in all_runs(served) if project_of(uid) in PROJECTS[who]}


def told(served: ServedOrganisation, who: str | None, path: str, **query: Any) -> Any:
    response = served.ask(who, "GET", f"/api/v1/{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def listed(served: ServedOrganisation, who: str | None, **query: Any) -> list[str]:
    """The runs of a list, page by page; its total is checked."""
    found: list[str] = []
    after = None
    while True:
        page = told(served, who, "runs", limit=3, **query, **({} if after is None else {"after": after}))
        found += [run["id"] for run in page["runs"]]
        after = page["next"]
        if after is None:
            assert page["total"] == len(found)
            return found


@pytest.mark.parametrize("who", PROJECTS, ids=str)
def test_filters_and_orders_of_runs(judged: ServedOrganisation, who: str) -> None:
    mine = readable(judged, who)
    assert set(listed(judged, who)) == mine
    for project in (*VISIBILITIES, "voice"):
        own = {uid for uid in mine if project_of(uid) == project}
        cause = cause_of(project)
        assert set(listed(judged, who, filter=f"finding:{cause}")) == own, cause
        assert set(listed(judged, who, filter=f"verdict:{cause}")) == own, cause
        assert set(listed(judged, who, filter=f"-finding:{cause}")) == mine - own, cause
        assert set(listed(judged, who, where=f"lost_hours = {hours_of(project)}")) == own, cause
    assert set(listed(judged, who, filter="lost_hours>0 finding:*")) == mine
    for sort in ("verdict", "-verdict", "lost_hours", "-lost_hours"):
        runs = listed(judged, who, sort=sort)
        assert set(runs) == mine
        if sort == "-lost_hours":
            assert [hours_of(project_of(uid)) for uid in runs] == sorted(
                (hours_of(project_of(uid)) for uid in mine), reverse=True
            )


@pytest.mark.parametrize("who", PROJECTS, ids=str)
def test_sums_of_lost_hours(judged: ServedOrganisation, who: str) -> None:
    mine = readable(judged, who)
    expected = {
        cause_of(project): sum(hours_of(project) for uid in mine if project_of(uid) == project)
        for project in PROJECTS[who]
    }
    report = told(judged, who, "lost-hours")
    assert {cause["id"]: cause["device_hours"] for cause in report["causes"]} == expected
    assert report["device_hours"] == sum(expected.values())
    assert (report["judged_runs"], report["waiting_runs"]) == (len(mine), 0)
    runs = told(judged, who, "lost-hours/runs", limit=100)
    assert ({run["run"] for run in runs["runs"]}, runs["total"]) == (mine, len(mine))
    assert {run["text"] for run in runs["runs"]} == {f"Found in {uid}." for uid in mine}
    places = told(judged, who, "lost-hours/places", by="project", limit=100)
    assert {place["project"]: place["device_hours"] for place in places["places"]} == {
        project: expected[cause_of(project)] for project in PROJECTS[who]
    }
    assert places["total"] == len(PROJECTS[who])
    teams = told(judged, who, "lost-hours/places", by="team")
    both = {OTHER_TEAM if project == "voice" else TEAM for project in PROJECTS[who]}
    assert ({place["entity"] for place in teams["places"]}, teams["total"]) == (both, len(both))
    for project in (*VISIBILITIES, "voice"):
        own = sum(project_of(uid) == project for uid in mine)
        assert told(judged, who, "lost-hours/runs", cause=cause_of(project))["total"] == own
        one = told(judged, who, "lost-hours", project=project)
        assert (len(one["causes"]), one["judged_runs"]) == (min(own, 1), own)


@pytest.mark.parametrize("who", PROJECTS, ids=str)
def test_findings_of_a_run(judged: ServedOrganisation, who: str) -> None:
    """A run that one may not read answers as one that does not exist."""
    mine = readable(judged, who)
    missing = judged.ask(who, "GET", "/api/v1/runs/no-such-run/findings")
    assert missing.status_code == 404
    for uid in all_runs(judged):
        response = judged.ask(who, "GET", f"/api/v1/runs/{uid}/findings")
        if uid in mine:
            assert response.json()["verdict"]["text"] == f"Found in {uid}."
        else:
            assert response.status_code == 404
            assert response.text.replace(uid, "") == missing.text.replace("no-such-run", "")


def test_visitors_and_what_only_billing_readers_may_see(judged: ServedOrganisation) -> None:
    for path in ("runs?filter=finding:idle", "lost-hours", "lost-hours/runs", "lost-hours/places"):
        assert judged.ask(None, "GET", f"/api/v1/{path}").status_code == 401
    for path in ("billing/lost-hours", "billing/lost-hours/places"):
        statuses = {who: judged.ask(who, "GET", f"/api/v1/{path}").status_code for who in (None, *PROJECTS)}
        assert {who for who, status in statuses.items() if status == 200} == {"rita"}
        assert set(statuses.values()) <= {200, 401, 403, 404}
    # Not even whether a team exists is looked up for the others.
    unknown = judged.ask("otto", "GET", "/api/v1/billing/lost-hours?entity=no-such-team")
    assert unknown.text == judged.ask("otto", "GET", f"/api/v1/billing/lost-hours?entity={TEAM}").text
    report = told(judged, "rita", "billing/lost-hours")
    assert report["judged_runs"] == len(all_runs(judged))
    places = told(judged, "rita", "billing/lost-hours/places", by="project")["places"]
    assert {place["project"]: place["readable"] for place in places} == {
        project: project in EVERYONE for project in (*VISIBILITIES, "voice")
    }
    assert "Found in" not in str((report, places))


def test_alerts_about_findings(judged: ServedOrganisation) -> None:
    """Who may see the rules of a team sees of what fired, and of what would have, only runs they may read."""
    condition = {"kind": "finding", "findings": [cause_of(project) for project in VISIBILITIES]}
    rule = {"name": "lost", "for": "1m", "condition": condition}
    path = f"/api/v1/entities/{TEAM}/alert-rules"
    created = judged.ask("alice", "POST", path, json={"rule": rule})
    assert created.status_code == 201, created.text
    judged.served.app.services.alerting.finding_watch.evaluate()
    for who in ("alice", "bob", "carol", "vera"):
        mine = {uid for uid in readable(judged, who) if project_of(uid) != "voice"}
        page = told(judged, who, f"entities/{TEAM}/alert-rules/history", limit=100)
        assert {firing["run"] for firing in page["firings"]} == mine
        assert page["total"] == len(mine)
        (counted,) = told(judged, who, f"entities/{TEAM}/alert-rules")["rules"]
        assert counted["firing"] == len(mine), counted
        tried = judged.ask(who, "POST", f"{path}/dry-run", json={"rule": rule, "days": 1})
        assert tried.status_code == 200, tried.text
        texts = {uid for uid in all_runs(judged) if uid in tried.text}
        assert texts == mine, who
    for who in ("otto", None):
        refused = judged.ask(who, "GET", f"{path}/history")
        assert refused.status_code in (401, 403, 404)
