"""Guests with a link to a report see what its panels show, and nothing else, whatever they try."""

from __future__ import annotations

import re
from typing import Any, Final

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.reports.panel_runs import UNREADABLE
from tests.server.access.declared_routes import declared_routes
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import LOSS, REPORTS, panel, publish, run_set

DAY = 86_400_000
_UNKNOWN: Final = "999999"
OPEN_TO_GUESTS: Final = {
    "/api/v1/reports/{report}",
    "/api/v1/reports/{report}/files/{digest}",
    "/api/v1/reports/{report}/panels/{panel}/data",
    "/api/v1/reports/{report}/panels/{panel}/files/{sha256}",
}
"""Routes that need a permission, and yet answer a guest of a report."""


def link(server: AccountsServer, report: str, by: str = "bob", **new: Any) -> dict[str, str]:
    """The header that sends a new link."""
    body = server.ask(by, "POST", f"{report}/links", 201, json={"role": "view", "public": True, **new})
    assert body["url"].startswith("/-/shared#")
    return {"x-runvitals-link": body["url"].partition("#")[2]}


def hidden_report(server: AccountsServer) -> str:
    """A report of another team."""
    songs = {"id": "runs", "entity": "audio", "project": "songs"}
    block = {"id": "grid", "kind": "panels", "run_sets": [songs], "panels": [panel()]}
    body = {"title": "Songs", "blocks": [block], "publish": True}
    created = server.ask("olga", "POST", "entities/audio/projects/songs/reports", 201, json=body)
    return f"reports/{created['id']}"


def ask(
    server: AccountsServer, method: str, path: str, headers: dict[str, str], **how: Any
) -> httpx.Response:
    server.app.services.access.rights_changed()
    return server.connection.request(method, path, headers=headers, **how)


def test_a_guest_reads_the_report_and_its_panels(rates: AccountsServer) -> None:
    report = publish(rates, panel(zoom={"min": 0, "max": 1}))
    guest = link(rates, report)
    shown = rates.ask(None, "GET", report, headers=guest)
    assert (shown["title"], [right for right, may in shown["may"].items() if may]) == ("Rates", [])
    answer = rates.ask(None, "GET", f"{report}/panels/panel1/data", headers=guest)
    lines = answer["lines"]["logged:loss"]
    assert {line["run"] for group in lines for line in group["lines"]} == {"run-0", "run-1", "run-2"}
    assert [group["x"] for group in lines] == [[0.0, 1.0]]
    place = rates.ask(None, "GET", "shared", headers=guest)
    assert (place["run"], place["report"]["slug"], place["expires_ms"]) == (None, "Rates", None)
    assert f"reports/{place['report']['id']}" == report


@pytest.mark.parametrize(
    "query",
    [
        "draft=1",
        "draft=0",
        "x0=0",
        "x1=1",
        "points=2000",
        "keys=secret",
        "runs=run-2",
        "filter=",
        "run_sets=other",
        "format=csv",
        "entity=vision",
        "anything",
    ],
)
def test_a_guest_may_ask_for_nothing_else(rates: AccountsServer, query: str) -> None:
    report = publish(rates, panel(zoom={"min": 0, "max": 1}))
    guest = link(rates, report)
    response = ask(rates, "GET", f"{report}/panels/panel1/data?{query}", guest)
    assert response.status_code == 404, response.text
    assert "secret" not in response.text


def test_other_panels_reports_and_methods_are_unknown(rates: AccountsServer) -> None:
    report, other = publish(rates, panel()), publish(rates, panel())
    guest, elsewhere = link(rates, report), hidden_report(rates)
    for path in (
        f"{report}/panels/panel2/data",
        f"{other}/panels/panel1/data",
        f"{elsewhere}/panels/panel1/data",
        "reports/999999/panels/panel1/data",
        other,
        elsewhere,
        f"{report}?draft=1",
        f"{report}?revision=1",
        f"{report}/panels/panel1/files/{'0' * 64}",
    ):
        response = ask(rates, "GET", path, guest)
        assert response.status_code == 404, (path, response.status_code, response.text)
        assert ask(rates, "HEAD", path, guest).status_code in (404, 405), path
    for method, path in (
        ("PATCH", report),
        ("DELETE", report),
        ("POST", f"{report}/publish"),
        ("POST", f"{report}/duplicate"),
        ("POST", f"{report}/links"),
        ("GET", f"{report}/links"),
        ("GET", f"{report}/shares"),
        ("PUT", f"{report}/shares/mallory"),
        ("GET", f"{report}/versions"),
        ("PUT", f"{report}/star"),
        ("PUT", f"{report}/follow"),
        ("POST", f"{report}/panels/panel1/freeze"),
    ):
        response = ask(rates, method, path, guest, json={"revision": 1, "role": "edit"})
        assert response.status_code in (404, 405), (method, path, response.status_code, response.text)


def test_no_other_route_answers_a_guest(rates: AccountsServer) -> None:
    """Of all that are there: lists, streams, files, consoles, tables, doors of other systems …"""
    report = publish(rates, panel())
    guest = link(rates, report)
    values = {
        "run": "run-0",
        "project": "digits",
        "entity": "vision",
        "team": "vision",
        "user": "bob",
        "report": report.partition("/")[2],
        "panel": "panel1",
        "sha256": "0" * 64,
        "digest": "0" * 64,
    }
    answered = set()
    for route in declared_routes(rates.app.api.routes):
        permissions = set(route.permissions)
        path = route.path.replace(":path", "")
        for name in route.parameters:
            path = path.replace(f"{{{name}}}", values.get(name, "1"))
        rates.app.services.access.rights_changed()
        with rates.connection.stream(route.method, f"{rates.url}{path}", headers=guest) as response:
            if response.status_code < 300 and permissions != {"public"}:
                answered.add(route.path)
            if permissions and permissions != {"public"} and route.path not in OPEN_TO_GUESTS:
                assert response.status_code in (404, 405), (str(route), response.status_code)
    assert answered <= OPEN_TO_GUESTS
    assert "/api/v1/reports/{report}/panels/{panel}/data" in answered


def test_the_names_of_runs_are_all_that_an_overlay_would_need(rates: AccountsServer) -> None:
    guest = link(rates, publish(rates, panel()))
    for path in (
        "runs",
        "projects",
        "fields",
        "overlay/logged?runs=run-0&keys=loss",
        "overlay/plan?runs=run-0",
        "overlay/live?runs=run-0",
        "overlay/groups/logged?keys=loss&project=digits",
        "runs/run-0",
        "runs/run-0/live",
        "runs/run-0/console",
        "runs/run-0/history?keys=secret",
        "runs/run-0/files",
        "compare?runs=run-0&runs=run-1",
        "compare/importance?of=summary.loss",
        REPORTS,
        "reports",
    ):
        response = ask(rates, "GET", path, guest)
        assert response.status_code == 404, (path, response.status_code)


def test_links_end(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    data = f"{report}/panels/panel1/data"
    short = link(rates, report, expires_ms=rates.clock() + DAY)
    revoked = link(rates, report)
    rates.ask("bob", "POST", f"{report}/links", 422, json={"expires_ms": rates.clock() - 1})
    [first, second] = rates.ask("ada", "GET", f"{report}/links")["links"]
    assert (first["expires_ms"], second["expires_ms"]) == (rates.clock() + DAY, None)
    rates.ask("eve", "GET", f"{report}/links", 403)
    rates.ask("ada", "DELETE", f"{report}/links/{second['id']}", 204)
    rates.ask("ada", "DELETE", f"{report}/links/999", 404)
    rates.ask(None, "GET", data, 401, headers=revoked)
    rates.clock.now_ms += DAY
    rates.app.services.access.rights_changed()
    for path in (data, report, "shared"):
        assert ask(rates, "GET", path, short).status_code == 401, path
    changed = {"x-runvitals-link": short["x-runvitals-link"][:-1] + "A"}
    rates.ask(None, "GET", data, 401, headers=changed)


def test_a_link_to_a_deleted_report_leads_nowhere(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    guest = link(rates, report)
    rates.ask("bob", "DELETE", report, 204)
    for path in (report, f"{report}/panels/panel1/data"):
        rates.ask(None, "GET", path, 404, headers=guest)
    rates.ask(None, "GET", "shared", 410, headers=guest)
    rates.ask("bob", "POST", f"{report}/restore")
    rates.ask(None, "GET", report, headers=guest)


def test_drafts_have_no_links(rates: AccountsServer) -> None:
    body = {"title": "Draft", "blocks": []}
    draft = f"reports/{rates.ask('bob', 'POST', REPORTS, 201, json=body)['id']}"
    assert "publish" in rates.ask("bob", "POST", f"{draft}/links", 409, json={})["error"]


def test_a_guest_sees_of_other_projects_what_the_maker_may_read_now(rates: AccountsServer) -> None:
    songs = run_set(entity="audio", project="songs", filter="id:hidden", name="A secret name")
    rates.accounts.members.add("audio", "ada", "member", CLI, rates.clock())
    report = publish(rates, panel(), run_sets=[songs], by="ada")
    of_ada, of_bob = link(rates, report, "ada"), _link_of_bob(rates, report)
    data = f"{report}/panels/panel1/data"
    assert [run["id"] for run in rates.ask(None, "GET", data, headers=of_ada)["runs"]] == ["hidden"]
    assert "audio" in str(rates.ask(None, "GET", report, headers=of_ada)["blocks"])
    for headers in (of_bob, of_ada):
        answer = rates.ask(None, "GET", data, headers=headers)
        document = str(rates.ask(None, "GET", report, headers=headers)["blocks"])
        if headers is of_bob:
            assert (answer["runs"], answer["missing"], answer["problem"]) == ([], 0, UNREADABLE)
            assert not any(word in document for word in ("audio", "songs", "id:hidden", "secret"))
    rates.ask("olga", "DELETE", "teams/audio/members/ada", 204)
    answer = rates.ask(None, "GET", data, headers=of_ada)
    assert (answer["runs"], answer["problem"]) == ([], UNREADABLE)


def _link_of_bob(server: AccountsServer, report: str) -> dict[str, str]:
    server.ask("ada", "PUT", f"{report}/shares/bob", 204, json={"role": "edit"})
    secret, _ = server.accounts.guest_links.create(
        _actor(server, "bob"), server.clock(), report_id=int(report.partition("/")[2])
    )
    return {"x-runvitals-link": secret}


def _actor(server: AccountsServer, name: str) -> Actor:
    return Actor("user", name, server.accounts.users.by_name(name).id)


def test_switching_public_links_off_revokes_them(rates: AccountsServer) -> None:
    report = publish(rates, panel())
    guest = link(rates, report)
    assert rates.ask("ada", "GET", "teams/vision/settings")["public_links"] == 1
    rates.ask("olga", "PATCH", "teams/vision/privacy", json={"public_links": False})
    rates.ask(None, "GET", report, 401, headers=guest)
    rates.ask("bob", "POST", f"{report}/links", 403, json={})
    rates.ask("olga", "PATCH", "teams/vision/privacy", json={"public_links": True})
    rates.ask(None, "GET", report, 401, headers=guest)  # they stay revoked
    again = link(rates, report)
    assert rates.ask("olga", "GET", "organisation/settings")["public_links"] == 1
    rates.ask("olga", "PUT", "organisation/settings", json={"allow_public_links": False})
    rates.ask(None, "GET", report, 401, headers=again)
    assert rates.ask("olga", "GET", "organisation/settings")["public_links"] == 0
    made = [action for action in rates.actions() if action.startswith("report.link")]
    assert made == ["report.link_create", "report.link_create"]
    assert rates.actions().count("link.revoke") == 2


def test_a_guest_of_a_project_reads_no_reports_of_another(rates: AccountsServer) -> None:
    report = publish(rates, panel(queries=[LOSS]))
    elsewhere = hidden_report(rates)
    made = rates.ask("ada", "POST", "entities/vision/projects/digits/links", 201, json={})
    guest = {"x-runvitals-link": made["url"].partition("#")[2]}
    rates.ask(None, "GET", report, headers=guest)
    rates.ask(None, "GET", f"{report}/panels/panel1/data", headers=guest)
    rates.ask(None, "GET", elsewhere, 404, headers=guest)
    rates.ask(None, "GET", f"{elsewhere}/panels/panel1/data", 404, headers=guest)


def test_others_learn_nothing_of_a_report(rates: AccountsServer) -> None:
    """Members of another team, nobody, and guests of another report or of a revoked link."""
    rates.accounts.members.add("audio", "mallory", "admin", CLI, rates.clock())
    report = publish(rates, panel(title="A secret title"))
    number = report.partition("/")[2]
    rates.ask("bob", "PUT", f"{report}/follow", 204)
    comment = rates.ask("bob", "POST", f"{report}/comments", 201, json={"text": "A secret remark"})["id"]
    other = link(rates, hidden_report(rates), "olga")
    revoked = link(rates, report)
    [row] = rates.ask("bob", "GET", f"{report}/links")["links"]
    rates.ask("bob", "DELETE", f"{report}/links/{row['id']}", 204)
    draft = str(rates.ask("bob", "POST", REPORTS, 201, json={"title": "A secret draft"})["id"])
    values = {"panel": "panel1", "comment": str(comment), "name": "mallory", "emoji": "👍"}
    values |= dict.fromkeys(("digest", "sha256"), "0" * 64)
    body = {"revision": 1, "text": "x", "role": "edit", "title": "x"}
    mallory = {"cookie": cookie_of(rates, "mallory")}
    routes = [route for route in declared_routes(rates.app.api.routes) if "{report}" in route.path]
    assert len(routes) > 30
    for route in routes:
        path = route.path
        for name in route.parameters:
            path = path.replace(f"{{{name}}}", "{report}" if name == "report" else values.get(name, "1"))
        queries = ["?draft=1", "?x0=0&x1=1&points=2", "?keys=secret&runs=run-2"] if "data" in path else []
        for query in ("", *queries):
            for headers, status in ((mallory, 404), ({}, 401), (other, 404), (revoked, 401)):
                answers = []
                for target in (number, draft, _UNKNOWN):
                    url = rates.url + path.replace("{report}", target) + query
                    response = ask(rates, route.method, url, headers, json=body)
                    # 422: the route has no such parameter, whatever the report.
                    assert response.status_code in (status, 405, *([422] if query else [])), (url, headers)
                    answers.append(re.sub(r"\d+", "N", response.text))
                assert len(set(answers)) == 1, answers  # as if there were no such report
    for headers in (mallory, {}):
        for path in (f"{REPORTS}?text=secret", "reports?text=secret", "reports?of=team&entity=vision"):
            response = ask(rates, "GET", path, headers)
            assert response.status_code in (200, 401, 404), path
            assert response.status_code != 200 or response.json()["reports"] == [], path


def cookie_of(server: AccountsServer, name: str) -> str:
    """The session of a user, as a header has it."""
    with server.client(name) as client:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)
