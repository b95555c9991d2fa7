"""Limits of plans: who is told, once, and whose new runs are refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.usage.usage_alerts import check_limits
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.usage.used import use

PLAN = {
    "limits": [
        {"category": "device_hours", "included": 1, "limit": 10, "refuse_new_runs": True},
        {"category": "storage", "included": 0, "limit": 100},
    ]
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AccountsServer]:
    """olga administers the organisation, ada the team vision, which has a plan."""
    with accounts_server(tmp_path) as running:
        running.user("olga", org_role="admin")
        running.accounts.teams.create("vision", CLI, 1, administrator=running.user("ada").id)
        running.ask("olga", "PUT", "billing/plans/small", json=PLAN)
        assignment = {"plan": "small", "entity": "vision", "valid_from": "2026-01-01"}
        running.ask("olga", "POST", "billing/assignments", 201, json=assignment)
        yield running


def use_eleven_hours(server: AccountsServer) -> None:
    """Of 10 that the plan allows."""
    team = server.accounts.teams.by_name("vision").id
    use(server.metadata_store, "a", "2026-11-02", entity_id=team, hours=11)


def check(server: AccountsServer) -> list[str]:
    """Check the limits; the notifications about them, as receiver and first line."""
    return sorted(f"{receiver} {text.splitlines()[0]}" for receiver, text in sent(server))


def sent(server: AccountsServer) -> list[tuple[str, str]]:
    settings = server.app.services.usage_reports.settings()
    now_ms = settings.calendar.day(date(2026, 11, 20)).start_ms
    server.clock.now_ms = now_ms
    outbox = server.metadata_store.alerts.outbox
    before = {notification.id for notification in outbox.beginning_with(["usage:"])}
    check_limits(server.metadata_store, settings, now_ms)
    return [
        (notification.target, notification.text)
        for notification in outbox.beginning_with(["usage:"])
        if notification.id not in before
    ]


def test_limits_warn_and_then_refuse_new_runs(server: AccountsServer) -> None:
    team = server.accounts.teams.by_name("vision").id
    store = server.metadata_store
    ids = sorted(server.accounts.users.by_name(name).id for name in ("olga", "ada"))
    use(store, "a", "2026-11-02", entity_id=team, hours=9)
    text = "vision has used 9.0 of 10 h (device hours) in 2026-11"
    assert check(server) == [f"user:{number} {text}" for number in ids]
    assert check(server) == []  # once a month
    assert store.usage.refused == {}
    use(store, "b", "2026-11-03", entity_id=team, hours=2)
    assert len(check(server)) == 2
    assert store.usage.refused[team].startswith(
        "vision has used 11.0 of 10 h (device hours); administrators: "
    )
    uses = server.ask("olga", "GET", "billing")["uses"]
    (mine,) = (one for one in uses if (one["entity"], one["category"]) == ("vision", "device_hours"))
    assert (mine["percent"], mine["refuses_new_runs"]) == (pytest.approx(110), True)
    assert mine["expected"] == pytest.approx(11 * 30 / 19)  # 19 days have passed
    envelope = {"writer": "w", "seq": 0, "project": "digits", "entity": "vision", "keys": ["x"], "v": [[1.0]]}
    envelope["t"] = [server.clock.now_ms]
    with server.client() as client:
        ada = server.accounts.users.by_name("ada").id
        key, _ = server.accounts.keys.create("k", CLI, 1, user_id=ada)
        server.app.services.access.rights_changed()
        headers = {"authorization": f"Bearer {key}"}
        new = client.post("ingest", json={**envelope, "run": "new"}, headers=headers)
        assert new.status_code == 403
        assert "has used 11.0 of 10 h" in new.json()["error"]
        running = client.post("ingest", json={**envelope, "run": "b"}, headers=headers)
    assert running.status_code == 200


def test_a_limit_of_the_organisation_refuses_new_runs_of_all_teams(server: AccountsServer) -> None:
    usage, other = server.metadata_store.usage, server.accounts.users.by_name("ada").entity_id
    limit = {"category": "energy", "limit": 0, "refuse_new_runs": True}
    server.ask("olga", "PUT", "billing/plans/closed", json={"limits": [limit]})
    assignment = {"plan": "closed", "entity": None, "valid_from": "2026-01-01"}
    server.ask("olga", "POST", "billing/assignments", 201, json=assignment)
    check(server)
    assert (usage.refusal(other) or "").startswith("the organisation has used")
    server.ask("olga", "PUT", "billing/plans/closed", json={"limits": []})
    check(server)
    assert usage.refusal(other) is None


def test_what_a_plan_includes_costs_nothing(server: AccountsServer) -> None:
    use_eleven_hours(server)
    price = {"category": "device_hours", "price": 2, "valid_from": "2026-01-01"}
    server.ask("olga", "POST", "billing/rates", 201, json=price)
    sums = server.ask("olga", "GET", "usage?month=2026-11&by=team")["sums"]
    assert sums["cost"] == pytest.approx((11 - 1) * 2)


def test_a_plan_that_somebody_has_stays(server: AccountsServer) -> None:
    server.ask("olga", "DELETE", "billing/plans/small", 409)
    server.ask("olga", "PUT", "billing/plans/spare", json={})
    server.ask("olga", "DELETE", "billing/plans/spare", 204)
    server.ask("olga", "DELETE", "billing/plans/spare", 404)
    server.ask("ada", "GET", "billing", 403)
    twice = {"limits": [PLAN["limits"][0], PLAN["limits"][0]]}
    server.ask("olga", "PUT", "billing/plans/odd", 422, json=twice)


def test_a_limit_that_is_raised_warns_again(server: AccountsServer) -> None:
    team = server.accounts.teams.by_name("vision").id
    receivers = {name: f"user:{server.accounts.users.by_name(name).id}" for name in ("olga", "ada")}
    use_eleven_hours(server)
    assert len(check(server)) == 2
    limit = {"category": "device_hours", "limit": 100}
    server.ask("olga", "PUT", "billing/plans/small", json={"limits": [limit]})
    assert check(server) == []
    use(server.metadata_store, "c", "2026-11-04", entity_id=team, project="letters", hours=79)
    texts = dict(sent(server))
    assert texts.keys() == set(receivers.values())
    lines = [
        "vision has used 90.0 of 100 h (device hours) in 2026-11",
        "That is 90 % of the limit. The month ends on 2026-11-30.",
        "Largest projects: letters 79.0 h; digits 11.0 h.",
    ]
    advice = "A billing administrator can raise the limit: olga (olga@example.org)."
    assert texts[receivers["ada"]] == "\n\n".join([*lines, advice])
    raising = "You can raise the limit in the plan. At 100 %, nothing is refused."
    assert texts[receivers["olga"]] == "\n\n".join([*lines, raising])


def test_thresholds_and_receivers_are_as_they_were_set(server: AccountsServer) -> None:
    use_eleven_hours(server)
    assert len(check(server)) == 2
    limit = {"category": "device_hours", "limit": 12}
    server.ask("olga", "PUT", "billing/plans/small", json={"limits": [limit]})
    settings = server.ask("olga", "GET", "billing/alerts")
    assert (settings["percent"], settings["amounts"]) == ([85, 100], [200, 450, 700, 1000])
    assert set(settings["categories"].values()) == {True}
    server.ask("ada", "PUT", "billing/alerts", 403, json=settings)
    server.ask("olga", "PUT", "billing/alerts", 422, json={**settings, "percent": []})
    server.ask("olga", "PUT", "billing/alerts", 422, json={**settings, "amounts": list(range(1, 22))})
    off = {**settings, "percent": [88, 50], "categories": {"device_hours": False}}
    assert server.ask("olga", "PUT", "billing/alerts", json=off)["percent"] == [50, 88]
    assert check(server) == []
    server.user("otto", org_role="admin")
    on = {**off, "recipients": "billing", "categories": {}}
    server.ask("olga", "PUT", "billing/alerts", json=on)
    assert len(check(server)) == 2  # not otto
    assert server.actions(action="billing.alert") == ["billing.alert"] * 2
