"""Cost centres, usage alerts and statements, as billing administrators use them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from runvitals.cli import main
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.usage.used import HOUR_MS, use

MAIL = {
    "RUNVITALS_SMTP_URL": "smtp://127.0.0.1:1?tls=none",
    "RUNVITALS_MAIL_FROM": "runs@example.org",
    "RUNVITALS_URL": "https://runs.example.org",
}
CENTRE = {"code": "CC-1", "name": "Vision", "contact": "pay@example.org", "purchase_order": "PO 7"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    """bella is a billing administrator, olga administers the organisation, ada the team vision."""
    with accounts_server(tmp_path_factory.mktemp("billing")) as running:
        box = SecretBox({"k": bytes(32)})
        running.start_mail(Mailer(running.metadata_store, box, running.clock, MAIL), box)
        running.user("bella", org_role="admin")  # the first administrator has the billing role
        running.user("olga", org_role="admin")
        ada = running.user("ada")
        for name in ("vision", "speech"):
            running.accounts.teams.create(name, CLI, 1, administrator=ada.id if name == "vision" else None)
        team = running.accounts.teams.by_name("vision").id
        use(running.metadata_store, "a", "2026-11-02", entity_id=team, author_id=ada.id, hours=3)
        use(running.metadata_store, "b", "2026-11-20", entity_id=team, project="letters", hours=5)
        yield running


def check_a_cost_centre_pays_from_a_day_on(server: AccountsServer) -> None:
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
    assert ([assignment["code"] for assignment in first["cost_centres"]], first["total"]) == (["CC-1"], 2)
    rest = server.ask("olga", "GET", f"billing/cost-centres?after={first['next']}")
    assert [assignment["code"] for assignment in rest["cost_centres"]] == ["CC-2"]
    whole = {"entity": "vision", "project": None, "valid_from": "2026-11-01", "cost_centre": "CC-1"}
    part = {"entity": "vision", "project": "letters", "valid_from": "2026-11-10", "cost_centre": "CC-2"}
    for assignment in (whole, part):
        assert (
            server.ask("olga", "POST", "billing/cost-centre-assignments", 201, json=assignment) == assignment
        )
    listed = server.ask("olga", "GET", "billing/cost-centre-assignments")["assignments"]
    assert sorted(listed, key=lambda assignment: assignment["valid_from"]) == [whole, part]
    rows = server.ask("olga", "GET", "usage?month=2026-11&by=cost_centre")["rows"]
    assert [(row["cost_centre"], row["tracked_hours"]) for row in rows] == [("CC-1", 3.0), ("CC-2", 5.0)]
    for wrong, field in (({"project": "no"}, "project"), ({"cost_centre": "no"}, "cost_centre")):
        error = server.ask("olga", "POST", "billing/cost-centre-assignments", 422, json={**part, **wrong})
        assert list(error["fields"]) == [field]
    events = server.accounts.audit.page(AuditFilter(action="billing.cost_centre"), 10)
    assert [event.target for event in events] == ["CC-2", "CC-1", "CC-2", "CC-2", "CC-1"]
    assert events[0].after == {"project": "vision/letters", "valid_from": "2026-11-10"}
    check_who_pays_after_a_cost_centre_was_deleted(server, part)


def check_who_pays_after_a_cost_centre_was_deleted(server: AccountsServer, part: dict[str, Any]) -> None:
    server.ask("olga", "POST", "billing/cost-centres", 201, json={"code": "CC-3", "name": "Short"})
    moved = {**part, "valid_from": "2026-11-15", "cost_centre": "CC-3"}
    server.ask("olga", "POST", "billing/cost-centre-assignments", 201, json=moved)
    server.ask("ada", "DELETE", "billing/cost-centres/CC-3", 403)
    server.ask("olga", "DELETE", "billing/cost-centres/CC-9", 404)
    for code in ("CC-3", "CC-2"):
        rows = server.ask("olga", "GET", "usage?month=2026-11&by=cost_centre")["rows"]
        assert [(row["cost_centre"], row["tracked_hours"]) for row in rows] == [("CC-1", 3.0), (code, 5.0)]
        if code == "CC-3":
            server.ask("olga", "DELETE", "billing/cost-centres/CC-3", 204)
    [deleted, *_] = server.accounts.audit.page(AuditFilter(action="billing.cost_centre"), 10)
    assert (deleted.target, deleted.after) == ("CC-3", None)
    assert deleted.before is not None
    assert deleted.before["name"] == "Short"


PRICE = {"category": "device_hours", "price": 2.005, "valid_from": "2026-11-01"}
SETTLEMENT = {"issuer": "1 Lab Road", "address": "Vision\n2 Lab Road", "purchase_order": "PO 7"}
DECEMBER = 1_796_104_800_000  # 2026-12-01 06:00 UTC


def drafts(server: AccountsServer, now_ms: int = DECEMBER) -> list[dict[str, Any]]:
    """The statements after the drafts were computed."""
    server.clock.now_ms = now_ms
    server.app.services.statements.update(server.app.services.usage_reports.settings(), now_ms)
    statements: list[dict[str, Any]] = server.ask("olga", "GET", "billing/statements")["statements"]
    return statements


def check_statements_from_the_draft_to_the_correction(server: AccountsServer) -> None:
    server.ask("olga", "POST", "billing/rates", 201, json=PRICE)
    assert drafts(server, DECEMBER - HOUR_MS) == []
    letters, vision = drafts(server)
    assert [
        (statement["scope"], statement["total"], statement["state"]) for statement in (vision, letters)
    ] == [
        ("CC-1", 6.02, "draft"),  # 6.015 and 10.025, half to even
        ("CC-2", 10.02, "draft"),
    ]
    server.ask("olga", "GET", "billing/settlement", 403)
    server.clock.now_ms = DECEMBER - HOUR_MS * 24  # in the month with charges
    assert server.ask("bella", "GET", "billing")["asks_for_payment_data"]
    server.ask("bella", "PUT", "billing/settlement", json=SETTLEMENT)
    assert not server.ask("bella", "GET", "billing")["asks_for_payment_data"]
    server.clock.now_ms = DECEMBER
    path = f"billing/statements/{vision['id']}"
    server.ask("olga", "POST", f"{path}/issue", 403)
    with server.client("bella", sudo=False) as client:
        assert client.post(f"{path}/issue").status_code == 428
    server.ask("bella", "GET", f"{path}.pdf", 409)
    issued = server.ask("bella", "POST", f"{path}/issue")
    assert (issued["number"], issued["state"], issued["total"]) == ("RV-2026-000001", "issued", 6.02)
    server.ask("bella", "POST", f"{path}/issue", 409)
    notifications = server.metadata_store.alerts.outbox.beginning_with([f"statement:{issued['number']}:"])
    bella = server.accounts.users.by_name("bella").id
    text = "Statement RV-2026-000001 of CC-1 for 2026-11: 6.02 EUR"
    assert [(statement.kind, statement.target, statement.text) for statement in notifications] == [
        ("billing.statement", f"user:{bella}", text)
    ]
    mails = server.accounts.outgoing_mail.due(DECEMBER)
    assert [mail.address for mail in mails if mail.kind == "statement"] == ["pay@example.org"]
    late = {**PRICE, "valid_from": "2026-11-30"}
    assert "2026-11" in server.ask("olga", "POST", "billing/rates", 409, json=late)["error"]
    move = {"entity": "vision", "valid_from": "2026-11-30", "cost_centre": None}
    server.ask("olga", "POST", "billing/cost-centre-assignments", 409, json=move)
    assert "2026-11" in server.ask("olga", "DELETE", "billing/cost-centres/CC-1", 409)["error"]
    money = server.ask("olga", "PUT", "organisation/settings", 409, json={"currency": "USD"})
    assert "statements were issued" in money["error"]
    shown = server.ask("olga", "GET", "organisation/settings")["settings"]["currency"]
    assert (shown["editable"], shown["value"]) == (False, "EUR")
    server.ask("olga", "PATCH", "billing/cost-centres/CC-1", json={"name": "Seeing"})
    check_that_it_stays(server, issued["number"])
    correct(server, issued["number"])


def check_that_it_stays(server: AccountsServer, number: str) -> None:
    """What changes later does not change a statement, on paper either."""
    server.ask("bella", "PUT", "billing/settlement", json={"issuer": "elsewhere"})
    shown = server.ask("olga", "GET", f"billing/statements/{number}")
    (line,) = shown["lines"]
    assert (line["project"], line["quantity"], line["price"]) == ("vision/digits", 3.0, 2.005)
    with server.client("olga") as client:
        pdf = client.get(f"billing/statements/{number}.pdf")
        assert client.get(f"billing/statements/{number}.pdf").content == pdf.content
        page = client.get(f"billing/statements/{number}.html")
    assert pdf.headers["content-type"] == "application/pdf"
    text = PdfReader(io.BytesIO(pdf.content)).pages[0].extract_text()
    for words in (number, "not a tax invoice", "1 Lab Road", "vision/digits", "6.02 EUR", "Page 1", "PO 7"):
        assert words in text
        assert words in page.text or words == "Page 1"
    assert "Seeing" not in text
    assert "sandbox" in page.headers["content-security-policy"]
    server.ask("ada", "GET", f"billing/statements/{number}", 404)  # of a cost centre
    server.ask(None, "GET", f"billing/statements/{number}.pdf", 401)


def correct(server: AccountsServer, number: str) -> None:
    server.ask("bella", "POST", f"billing/statements/{number}/cancel", 422, json={"reason": " "})
    path = f"billing/statements/{number}/cancel"
    cancelling = server.ask("bella", "POST", path, json={"reason": "the wrong price"})
    assert (cancelling["number"], cancelling["total"]) == ("RV-2026-000002", -6.02)
    assert (cancelling["replaces"], cancelling["state"]) == (number, "cancellation")
    server.ask("bella", "POST", path, 409, json={"reason": "again"})
    server.ask("olga", "POST", "billing/rates", 201, json={**PRICE, "price": 1, "device_glob": "*H100*"})
    (draft,) = [one for one in drafts(server) if one["state"] == "draft" and one["scope"] == "CC-1"]
    assert draft["replaces"] == number
    corrected = server.ask("bella", "POST", f"billing/statements/{draft['id']}/issue")
    assert (corrected["number"], corrected["total"]) == ("RV-2026-000003", 3.0)
    states = {one["number"]: one["state"] for one in drafts(server)}
    assert [states[f"RV-2026-00000{n}"] for n in (1, 2, 3)] == ["corrected", "cancellation", "issued"]
    assert server.actions(action="billing.statement_*") == [
        "billing.statement_issue",
        "billing.statement_cancel",
        "billing.statement_issue",
    ]


def check_late_data_is_in_the_next_statement(server: AccountsServer) -> None:
    team = server.accounts.teams.by_name("vision").id
    use(server.metadata_store, "late", "2026-11-05", entity_id=team, hours=2)
    use(server.metadata_store, "d", "2026-12-05", entity_id=team, hours=1)
    january = DECEMBER + 31 * 86_400_000
    late = {draft["scope"]: draft for draft in drafts(server, january) if draft["period"] == "2026-12"}
    lines = server.ask("olga", "GET", f"billing/statements/{late['CC-1']['id']}")["lines"]
    assert [(line["text"], line["quantity"], line["amount"]) for line in lines] == [
        ("", 1.0, 1.0),
        ("late data of 2026-11", 2.0, 2.0),
    ]
    issued = server.ask("bella", "POST", f"billing/statements/{late['CC-1']['id']}/issue")
    assert issued["number"] == "RV-2027-000001"
    february = {
        draft["period"] for draft in drafts(server, january + 31 * 86_400_000) if draft["scope"] == "CC-1"
    }
    assert february == {"2026-11", "2026-12"}  # not billed twice


def check_administrators_of_teams_see_what_was_issued_to_their_teams(server: AccountsServer) -> None:
    ada, letters = server.accounts.users.by_name("ada").id, "2026-11"
    speech = server.accounts.teams.create("sound", CLI, 1, administrator=ada).id
    use(server.metadata_store, "s", "2027-01-05", entity_id=speech, hours=1)
    draft = next(one for one in drafts(server, server.clock() + HOUR_MS) if one["scope"] == "sound")
    path = f"billing/statements/{draft['id']}"
    server.ask("ada", "GET", path, 404)
    server.ask("bella", "POST", f"{path}/issue")
    assert [one["scope"] for one in server.ask("ada", "GET", "billing/statements")["statements"]] == ["sound"]
    assert server.ask("ada", "GET", path)["total"] == 1.0
    server.user("eve")
    server.ask("eve", "GET", "billing/statements", 403)
    page = server.ask("olga", "GET", f"billing/statements?period={letters}&limit=1")
    assert page["total"] == 4
    assert page["next"] == str(page["statements"][0]["id"])


def check_statements_on_the_command_line(server: AccountsServer, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(server.store.folder).parent
    options = ["--store", f"{folder}/store", "--catalogue", f"{folder}/catalogue.db"]
    assert main(["usage", "statements", "list", "--month", "2026-11", *options]) == 0
    assert "RV-2026-000001" in capsys.readouterr().out
    draft = next(one for one in drafts(server) if one["state"] == "draft" and one["scope"] == "CC-2")
    assert main(["usage", "statements", "issue", str(draft["id"]), *options]) == 0
    shown = capsys.readouterr().out
    number = next(word for word in shown.split() if word.startswith("RV-"))
    assert server.ask("olga", "GET", f"billing/statements/{number}")["issued_by"] == "cli"
    assert main(["usage", "statements", "show", number, *options]) == 0
    assert "vision/letters" in capsys.readouterr().out
    assert main(["usage", "statements", "issue", str(draft["id"]), *options]) != 0
    assert "is no draft" in capsys.readouterr().err


def test_costs_from_their_centre_to_issued_statements(
    server: AccountsServer, capsys: pytest.CaptureFixture[str]
) -> None:
    check_a_cost_centre_pays_from_a_day_on(server)
    check_statements_from_the_draft_to_the_correction(server)
    check_late_data_is_in_the_next_statement(server)
    check_administrators_of_teams_see_what_was_issued_to_their_teams(server)
    check_statements_on_the_command_line(server, capsys)
