"""Cost centres, usage alerts and statements, as billing administrators use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runvitals.store.metadata.accounts.audit import CLI, AuditFilter
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.usage.used import use

CENTRE = {"code": "CC-1", "name": "Vision", "contact": "pay@example.org", "purchase_order": "PO 7"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    """bella is a billing administrator, olga administers the organisation, ada the team vision."""
    with accounts_server(tmp_path_factory.mktemp("billing")) as running:
        running.user("bella", org_role="admin")  # the first administrator has the billing role
        running.user("olga", org_role="admin")
        ada = running.user("ada")
        for name in ("vision", "speech"):
            running.accounts.teams.create(name, CLI, 1, administrator=ada.id if name == "vision" else None)
        team = running.accounts.teams.by_name("vision").id
        use(running.metadata_store, "a", "2026-11-02", entity_id=team, author_id=ada.id, hours=3)
        use(running.metadata_store, "b", "2026-11-20", entity_id=team, project="letters", hours=5)
        yield running


def test_a_cost_centre_pays_from_a_day_on(server: AccountsServer) -> None:
    server.ask("olga", "POST", "billing/cost-centres", 201, json=CENTRE)
    again = server.ask("olga", "POST", "billing/cost-centres", 422, json=CENTRE)
    assert "already" in again["fields"]["code"]
    server.ask("olga", "POST", "billing/cost-centres", 201, json={"code": "CC-2", "name": "Letters"})
    server.ask("ada", "GET", "billing/cost-centres", 403)
    wrong = {"code": "CC-3", "name": "x", "contact": "nobody"}
    server.ask("olga", "POST", "billing/cost-centres", 422, json=wrong)
    changed = server.ask("olga", "PATCH", "billing/cost-centres/CC-2", json={"address": "1 Road\nTown"})
    assert (changed["name"], changed["address"]) == ("Letters", "1 Road\nTown")
    server.ask("olga", "PATCH", "billing/cost-centres/CC-9", 404, json={"name": "x"})
    first = server.ask("olga", "GET", "billing/cost-centres?limit=1")
    assert ([one["code"] for one in first["cost_centres"]], first["total"]) == (["CC-1"], 2)
    rest = server.ask("olga", "GET", f"billing/cost-centres?after={first['next']}")
    assert [one["code"] for one in rest["cost_centres"]] == ["CC-2"]
    whole = {"entity": "vision", "project": None, "valid_from": "2026-11-01", "cost_centre": "CC-1"}
    part = {"entity": "vision", "project": "letters", "valid_from": "2026-11-10", "cost_centre": "CC-2"}
    for one in (whole, part):
        assert server.ask("olga", "POST", "billing/cost-centre-assignments", 201, json=one) == one
    listed = server.ask("olga", "GET", "billing/cost-centre-assignments")["assignments"]
    assert sorted(listed, key=lambda one: one["valid_from"]) == [whole, part]
    rows = server.ask("olga", "GET", "usage?month=2026-11&by=cost_centre")["rows"]
    assert [(row["cost_centre"], row["tracked_hours"]) for row in rows] == [("CC-1", 3.0), ("CC-2", 5.0)]
    for wrong, field in (({"project": "no"}, "project"), ({"cost_centre": "no"}, "cost_centre")):
        found = server.ask("olga", "POST", "billing/cost-centre-assignments", 422, json={**part, **wrong})
        assert list(found["fields"]) == [field]
    events = server.accounts.audit.page(AuditFilter(action="billing.cost_centre"), 10)
    assert [event.target for event in events] == ["CC-2", "CC-1", "CC-2", "CC-2", "CC-1"]
    assert events[0].after == {"project": "vision/letters", "valid_from": "2026-11-10"}
