"""What the API and the exports say about usage, and to whom."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.tables.runs import run
from runvitals.server.database.tables.sweeps import sweep, sweep_run
from runvitals.server.usage.focus import COLUMNS
from runvitals.server.usage.reports import CSV_COLUMNS
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.usage.used import A100, H100, use

MONTH = "2026-11"
MANDATORY = """BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd
    BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart
    ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity
    PricingUnit ProviderName PublisherName ServiceCategory
    ServiceName"""
"""The columns that FOCUS 1.1 requires of everyone."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    """Two teams that used devices; olga administers the organisation, ada the team vision, bob is in it."""
    with accounts_server(tmp_path_factory.mktemp("usage")) as running:
        running.user("olga", org_role="admin")
        ada, bob = (running.user(name) for name in ("ada", "bob"))
        now_ms = running.clock()
        vision = running.accounts.teams.create("vision", CLI, now_ms, administrator=ada.id)
        running.accounts.members.add("vision", "bob", "member", CLI, now_ms)
        speech = running.accounts.teams.create("speech", CLI, now_ms)
        running.accounts.teams.create("secrets", CLI, now_ms, hidden=True)
        store = running.metadata_store
        use(store, "a", "2026-11-02", entity_id=vision.id, author_id=ada.id, hours=2, models=(H100, A100))
        use(store, "b", "2026-11-03", entity_id=vision.id, author_id=bob.id, hours=4, state="crashed")
        use(
            store,
            "c",
            "2026-11-03",
            entity_id=speech.id,
            project="=1+1",
            idle_hours=0.5,
            storage_bytes=30 * 10**9,
        )
        use(store, "d", "2026-10-31", entity_id=speech.id, hours=8)
        running.ask("olga", "POST", "billing/rates", 201, json=rate(2.0))
        running.ask("olga", "POST", "billing/rates", 201, json=rate(3.0, device_glob="*H100*"))
        running.ask("olga", "POST", "billing/rates", 201, json=rate(0.5, category="energy"))
        yield running


def rate(price: float, **more: Any) -> dict[str, Any]:
    return {"category": "device_hours", "price": price, "valid_from": "2026-11-01", **more}


def report(server: AccountsServer, name: str, query: str, status: int = 200) -> Any:
    return server.ask(name, "GET", f"usage?month={MONTH}&{query}", status)


def test_a_month_by_team(server: AccountsServer) -> None:
    month = report(server, "olga", "by=team")
    speech, vision = month["rows"]
    assert (vision["team"], vision["runs"], vision["tracked_hours"]) == ("vision", 2, 6.0)
    assert (vision["device_hours"], vision["energy_kwh"]) == (8.0, 3.0)
    assert vision["cost"] == pytest.approx(2 * 3 + 2 * 2 + 4 * 3 + 3 * 0.5)
    assert vision["wasted"] == vision["wasted_failed"] == pytest.approx(4 * 3)  # the run that crashed
    assert speech["wasted"] == pytest.approx(0.5 * 3)  # idle time
    assert (speech["wasted_failed"], vision["device_failed_hours"]) == (0.0, 4.0)
    assert speech["storage_gb_month"] == pytest.approx(1.0)
    assert (speech["ingest_gb"], speech["points"], speech["co2_kg"]) == (2.0, 7, None)
    assert month["sums"]["cost"] == pytest.approx(vision["cost"] + speech["cost"])
    assert month["currency"] == "EUR"


def test_a_month_without_prices_has_no_cost(server: AccountsServer) -> None:
    month = server.ask("olga", "GET", "usage?month=2026-10&by=team,model")
    (row,) = month["rows"]
    assert (row["model"], row["device_hours"], row["cost"]) == (H100, 8.0, None)


def test_by_model_hours_of_runs_are_in_the_first_row_only(server: AccountsServer) -> None:
    rows = report(server, "olga", "by=project,model&entity=vision")["rows"]
    assert [(row["model"], row["tracked_hours"], row["device_hours"]) for row in rows] == [
        (A100, 6.0, 2.0),
        (H100, 0, 6.0),
    ]


def test_who_may_see_whose_usage(server: AccountsServer) -> None:
    assert len(report(server, "ada", "by=author&entity=vision")["rows"]) == 2
    report(server, "ada", "by=team", 403)
    report(server, "ada", "by=team&entity=speech", 404)
    report(server, "bob", "by=team&entity=vision", 403)
    (own,) = report(server, "bob", "by=author&author=me")["rows"]
    assert (own["author"], own["device_hours"]) == ("bob", 4.0)
    server.ask(None, "GET", "usage", 401)
    # Whether a team or user exists is not told to those who may not know of it.
    assert report(server, "bob", "author=me&entity=vision")["rows"]
    for name in ("secrets", "nobody"):
        hidden = report(server, "bob", f"author=me&entity={name}", 404)
        assert hidden["error"] == f"there is no team or user {name!r}"


def test_members_see_names_if_the_organisation_lets_them(server: AccountsServer) -> None:
    server.accounts.settings.put({"usage_names": True}, CLI, server.clock())
    rows = report(server, "bob", "by=team,author&entity=vision")["rows"]
    assert [(row["author"], row["device_hours"]) for row in rows] == [("ada", 4.0), ("bob", 4.0)]
    report(server, "bob", "by=author,project&entity=vision", 403)
    report(server, "bob", "by=author&entity=vision&project=digits", 403)
    report(server, "bob", "by=author&entity=speech", 404)
    with server.client("bob") as client:
        assert client.get(f"usage/focus.csv?month={MONTH}&entity=vision").status_code == 403
    server.accounts.settings.put({"usage_names": False}, CLI, server.clock())


def test_usage_is_told_by_sweep(server: AccountsServer) -> None:
    store = server.metadata_store
    [place] = store.runs.places("b")
    project_id = store.write(
        lambda c: c.execute(select(run.c.project_id).where(run.c.id == place.run_id)).scalar()
    )

    def add(connection: Connection) -> None:
        about = {"id": 1, "project_id": project_id, "name": "abcdefgh", "source": "", "configuration": "{}"}
        times = {"state": "pending", "seed": 1, "places": 0, "created_ms": 1, "changed_ms": 1}
        connection.execute(insert(sweep).values({**about, **times}))
        ours = {
            "sweep_id": 1,
            "run_name": "b",
            "run_id": place.run_id,
            "tries": 0,
            "state": "finished",
            "marks": "",
        }
        ended = {"state": "ended", "marks": "[]", "created_ms": 1}
        connection.execute(insert(sweep_run).values({**ours, **ended}))

    store.write(add)
    rows = report(server, "ada", "by=sweep&entity=vision")["rows"]
    assert [(row["sweep"], row["device_hours"]) for row in rows] == [("abcdefgh", 4.0), (None, 4.0)]


def test_what_is_wrong_with_a_request_is_said(server: AccountsServer) -> None:
    assert "unknown dimension" in report(server, "olga", "by=planet", 422)["fields"]["by"]
    wrong = server.ask("olga", "GET", "usage?month=2026-13", 422)
    assert "2026-11" in wrong["fields"]["month"]
    server.ask("olga", "GET", "usage?from=2026-11-02", 422)
    for month in ("9999-12", "0000-01", "２０２６-11", "2026-11-01"):
        assert "2026-11" in server.ask("olga", "GET", f"usage?month={month}", 422)["fields"]["month"]
    for days in (
        "from=20261101&to=20261102",
        "from=9999-01-01&to=9999-12-31",
        "from=0001-01-01&to=2026-11-01",
    ):
        server.ask("olga", "GET", f"usage?{days}", 422)
    with server.client("olga") as client:
        for price in ("NaN", "1e400", "-1", "true", '"1"'):
            body = f'{{"category": "energy", "price": {price}, "valid_from": "2026-11-01"}}'
            how = {"content": body, "headers": {"content-type": "application/json"}}
            assert client.post("billing/rates", **how).status_code == 422, price
    server.ask("ada", "GET", "billing/rates", 403)
    server.ask("ada", "POST", "billing/rates", 403, json=rate(1))


def test_the_csv_has_all_columns_and_nothing_that_a_spreadsheet_runs(server: AccountsServer) -> None:
    with server.client("olga") as client:
        response = client.get(f"usage.csv?month={MONTH}")
    assert response.headers["content-type"].startswith("text/csv")
    header, *rows = csv.reader(io.StringIO(response.text, newline=""))
    assert tuple(header) == CSV_COLUMNS
    assert response.text.endswith("\r\n")
    records = [dict(zip(header, row, strict=True)) for row in rows]
    assert {row["project"] for row in records} == {"digits", "'=1+1"}
    assert {(row["month"], row["entity_kind"]) for row in records} == {(MONTH, "team")}
    assert sum(float(row["device_hours"]) for row in records) == 9.0


def test_focus_has_a_row_for_each_day_and_category(server: AccountsServer) -> None:
    with server.client("olga") as client:
        rows = list(csv.DictReader(io.StringIO(client.get(f"usage/focus.csv?month={MONTH}").text)))
    assert tuple(rows[0]) == COLUMNS
    devices = [
        row for row in rows if row["ServiceName"] == "Accelerators" and row["SubAccountId"] == "vision"
    ]
    assert [(row["SkuId"], row["ConsumedQuantity"], row["BilledCost"]) for row in devices] == [
        (f"device_hours/{A100}", "2.0", "4.0"),
        (f"device_hours/{H100}", "2.0", "6.0"),
        (f"device_hours/{H100}", "4.0", "12.0"),
    ]
    assert {(row["PricingUnit"], row["ListUnitPrice"], row["ListCost"]) for row in devices} == {
        ("Hours", "2.0", "4.0"),
        ("Hours", "3.0", "6.0"),
        ("Hours", "3.0", "12.0"),
    }
    assert MANDATORY.split() == [name for name in COLUMNS if name in MANDATORY.split()]
    mandatory = set(MANDATORY.split()) - {"ChargeClass"}  # null: no correction
    mandatory |= {"ListUnitPrice", "ContractedUnitPrice", "SkuId", "SkuMeter", "SkuPriceId"}  # of all usage
    assert all(row[name] != "" for row in rows for name in mandatory)
    assert devices[0]["ChargePeriodStart"] == "2026-11-02T00:00:00Z"
    assert json.loads(devices[0]["Tags"]) == {"runvitals/author": "ada"}
    assert json.loads(devices[0]["SkuPriceDetails"]) == {"DeviceModel": A100}
    assert {row["ListUnitPrice"] for row in rows if row["ServiceName"] == "Ingestion"} == {"0.0"}


def test_a_price_can_end_and_go_again(server: AccountsServer) -> None:
    price = server.ask("olga", "POST", "billing/rates", 201, json=rate(9, device_glob="TPU*"))
    early = server.ask("olga", "PATCH", f"billing/rates/{price['id']}", 422, json={"valid_to": "2026-10-31"})
    assert "not before 2026-11-01" in early["fields"]["valid_to"]
    ended = server.ask("olga", "PATCH", f"billing/rates/{price['id']}", json={"valid_to": "2026-12-31"})
    assert (ended["valid_to"], ended["price"], ended["unit"]) == ("2026-12-31", 9.0, "h")
    server.ask("olga", "DELETE", f"billing/rates/{price['id']}", 204)
    server.ask("olga", "DELETE", f"billing/rates/{price['id']}", 404)
    assert server.actions(action="billing.rate").count("billing.rate") == 6


def test_billing_administrators_are_listed_for_those_who_read_billing(server: AccountsServer) -> None:
    vera = server.user("vera")
    server.accounts.users.update(vera.id, CLI, server.clock(), billing_role="viewer")
    page = server.ask("vera", "GET", "billing/administrators")
    roles = {administrator["name"]: administrator["billing_role"] for administrator in page["administrators"]}
    assert roles == {"olga": "admin", "vera": "viewer"}
    server.ask("ada", "GET", "billing/administrators", 403)


def test_the_command_line_prints_the_same(server: AccountsServer, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(server.store.folder).parent
    options = ["--month", MONTH, "--store", f"{folder}/store", "--catalogue", f"{folder}/catalogue.db"]
    assert main(["usage", "--by", "team,model", "--format", "csv", *options]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["entity"], row["device_model"], row["device_hours"]) for row in rows] == [
        ("speech", H100, "1.0"),
        ("vision", A100, "2.0"),
        ("vision", H100, "6.0"),
    ]
    assert main(["usage", *options]) == 0
    assert "vision" in capsys.readouterr().out


def test_gauges_of_this_month_are_for_those_who_see_all_usage(server: AccountsServer) -> None:
    gauges = server.app.services.health.usage_gauges
    reports = server.app.services.usage_reports
    gauges.update(reports.settings(), reports.settings().calendar.day(date(2026, 11, 20)).start_ms)
    line = f'runvitals_usage_device_hours{{month="{MONTH}",team="vision",model="{H100}"}} 6.0'
    assert line in gauges.text
    for name, sees in (("olga", True), ("ada", False)):
        with server.client(name) as client:
            assert (line in client.get(f"{server.url}/metrics").text) is sees
