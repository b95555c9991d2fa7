"""Lost device-hours in the usage report, by day and in money."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import date, datetime, timezone
from io import StringIO

import pytest

from runvitals.findings.finding import Finding, Findings
from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.findings.kept_result import JudgedRun, continue_result
from runvitals.server.usage.days import Calendar
from runvitals.server.usage.lost_time_by_day import lost_by_day, share_lost_time
from runvitals.server.usage.storage.rates import StoredRate
from runvitals.server.usage.storage.reading import LostSpan
from tests.server.accounts_server import AccountsServer
from tests.server.usage.used import A100, H100, use

NOON = int(datetime(2026, 11, 23, 12, tzinfo=timezone.utc).timestamp()) * 1000


@dataclass
class Used:
    day: str
    run: int | None
    device_ms: int
    lost_ms: int = 0


def test_what_a_finding_cost_is_spread_over_its_days() -> None:
    spans = [LostSpan(1, NOON, NOON + DAY_MS, 10.0), LostSpan(1, NOON, NOON + 6 * HOUR_MS, 1.0)]
    whole = lost_by_day(spans, Calendar("UTC"), date(2026, 11, 23), date(2026, 11, 24))
    assert whole == {
        (1, "2026-11-23"): pytest.approx(6 * HOUR_MS),
        (1, "2026-11-24"): pytest.approx(5 * HOUR_MS),
    }
    later = lost_by_day(spans, Calendar("UTC"), date(2026, 11, 24), date(2026, 11, 30))
    assert later == {(1, "2026-11-24"): pytest.approx(5 * HOUR_MS)}


def test_devices_share_the_lost_time_and_lose_no_more_than_they_had() -> None:
    used = [Used("a", 1, 3000), Used("a", 1, 1000), Used("a", 2, 500), Used("a", None, 9), Used("b", 1, 70)]
    share_lost_time(used, {(1, "a"): 2000.0, (2, "a"): 600.0, (1, "b"): 0.0})
    assert [each.lost_ms for each in used] == [1500, 500, 500, 0, 0]


def test_the_report_has_lost_hours_and_what_they_cost(vision: AccountsServer) -> None:
    store, team = vision.metadata_store, vision.accounts.teams.by_name("vision")
    use(store, "a", "2026-11-23", entity_id=team.id, hours=4, models=(H100, A100))
    use(store, "b", "2026-11-23", entity_id=team.id, hours=4)
    for model, price in (("*H100*", 3_000_000), ("*A100*", 1_000_000)):
        store.usage.rates.add(StoredRate("device_hours", model, price, "2026-11-01"), CLI, NOON)
    idle = Finding(
        id="idle",
        severity="warning",
        confidence="certain",
        from_ms=NOON,
        to_ms=NOON + 4 * HOUR_MS,
        share=1.0,
        hosts=("node1",),
        devices=(),
        ranks=(),
        text="",
        evidence=(),
        device_hours=2.0,
        advice="",
        docs="",
    )
    [number] = [row.id for row in store.runs.get([1, 2], NOON).values() if row.uid == "a"]
    times = (NOON, NOON, NOON + 4 * HOUR_MS)
    judged = JudgedRun(number, 1, *times, True, Findings("idle", "", [idle]), 8.0)
    store.findings.put([continue_result(None, judged)[0]])
    report = vision.ask("olga", "GET", "usage?month=2026-11&by=run")
    rows = {row["run"]: row for row in report["rows"]}
    assert (rows["a"]["device_lost_hours"], rows["a"]["lost"]) == (2.0, 4.0)  # an hour of each model
    assert (rows["b"]["device_lost_hours"], rows["b"]["lost"]) == (0.0, 0.0)
    assert (report["sums"]["device_lost_hours"], report["sums"]["lost"]) == (2.0, 4.0)
    models = vision.ask("olga", "GET", "usage?month=2026-11&by=model")["rows"]
    assert {row["model"]: row["lost"] for row in models} == {H100: 3.0, A100: 1.0}
    with vision.client("olga") as client:
        text = client.get(f"{vision.url}/api/v1/usage.csv?month=2026-11&by=team").text
    [row] = csv.DictReader(StringIO(text))
    assert (row["device_lost_hours"], row["lost"]) == ("2.0", "4.0")
    other = vision.ask("olga", "GET", "usage?month=2026-12&by=run")
    assert other["sums"]["device_lost_hours"] == 0
