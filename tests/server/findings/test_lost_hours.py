"""`/lost-hours`: device-hours that runs lost, by cause, and the runs behind them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.findings.finding import RULES_VERSION, Finding, Findings
from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.readers.servers import Client
from runvitals.readers.servers import client as client_module
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.findings.kept_result import JudgedRun, continue_result
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat
from runvitals.server.usage.storage.rates import StoredRate
from tests.server.accounts_server import T0, AccountsServer
from tests.server.usage.used import use

IDLE = Finding(
    id="idle",
    severity="warning",
    confidence="certain",
    from_ms=T0 - 10 * HOUR_MS,
    to_ms=T0,
    share=0.5,
    hosts=("node1",),
    devices=(),
    ranks=(),
    text="The devices are idle.",
    evidence=(),
    device_hours=8.0,
    advice="Stop it.",
    docs="",
)
STARVED = replace(IDLE, id="input_bound_cpu", text="The devices wait for data.")
TODAY = date(2027, 1, 15).isoformat()


def run_of(server: AccountsServer, uid: str, project: str = "digits", team: str = "vision") -> int:
    """A run that is as old as the findings."""
    entity = server.accounts.teams.by_name(team)
    bob = server.accounts.users.by_name("bob")
    sender = Sender(entity.id, author_id=bob.id)
    registration = WriterRegistration(uid, "monitor.node1.1", project, sender=sender)
    [writer] = server.metadata_store.writers.join([registration], T0 - 10 * HOUR_MS)
    server.metadata_store.writers.record_heartbeats([WriterHeartbeat(writer.writer_id, T0, T0)])
    return writer.run_id


def judge(server: AccountsServer, run_id: int, *findings: Finding, device_hours: float = 80.0) -> None:
    verdict = findings[0].id if findings else "healthy"
    up_to_ms = max((each.to_ms or T0 for each in findings), default=T0)
    judged = JudgedRun(
        run_id,
        RULES_VERSION,
        T0,
        T0 - 10 * HOUR_MS,
        up_to_ms,
        True,
        Findings(verdict, "", findings),
        device_hours,
    )
    result, _ = continue_result(None, judged)
    server.metadata_store.findings.put([result])
    server.app.services.access.rights_changed()


def causes(report: dict[str, Any]) -> dict[str, tuple[float, int]]:
    return {each["id"]: (each["device_hours"], each["runs"]) for each in report["causes"]}


def test_what_runs_lost_by_cause(vision: AccountsServer) -> None:
    judge(vision, run_of(vision, "a"), IDLE)
    judge(vision, run_of(vision, "b"), replace(IDLE, device_hours=2.0), replace(STARVED, hosts=("n2",)))
    judge(vision, run_of(vision, "healthy"))
    run_of(vision, "waiting")
    report = vision.ask("bob", "GET", "lost-hours?project=digits")
    assert causes(report) == {"idle": (10.0, 2), "input_bound_cpu": (8.0, 1)}
    assert report["causes"][0]["title"]
    assert (report["device_hours"], report["judged_runs"], report["waiting_runs"]) == (18.0, 3, 1)
    assert (report["money"], report["currency"]) == (None, None)
    runs = vision.ask("bob", "GET", "lost-hours/runs?project=digits&cause=idle")
    assert [(each["run"], each["device_hours"], each["text"]) for each in runs["runs"]] == [
        ("a", 8.0, "The devices are idle."),
        ("b", 2.0, "The devices are idle."),
    ]
    assert (runs["total"], runs["next"]) == (2, None)
    first = vision.ask("bob", "GET", "lost-hours/runs?limit=2")
    assert (first["total"], len(first["runs"])) == (3, 2)
    second = vision.ask("bob", "GET", f"lost-hours/runs?limit=2&after={first['next']}")
    assert [each["run"] for each in (*first["runs"], *second["runs"])] == ["b", "a", "b"]
    assert second["next"] is None


def test_overlapping_findings_do_not_count_twice(vision: AccountsServer) -> None:
    judge(vision, run_of(vision, "a"), IDLE, STARVED, replace(STARVED, id="straggler"))
    assert causes(vision.ask("bob", "GET", "lost-hours")) == {"idle": (8.0, 1)}
    judge(vision, run_of(vision, "a"), *(replace(IDLE, hosts=(f"n{i}",)) for i in range(40)), device_hours=80)
    assert causes(vision.ask("bob", "GET", "lost-hours")) == {"idle": (80.0, 1)}


def test_only_what_is_within_the_period_counts(vision: AccountsServer) -> None:
    judge(vision, run_of(vision, "a"), IDLE)
    since, until = T0 - 3 * HOUR_MS, T0 - HOUR_MS
    report = vision.ask("bob", "GET", f"lost-hours?since={since}&until={until}")
    assert causes(report) == {"idle": (pytest.approx(1.6), 1)}
    assert causes(vision.ask("bob", "GET", "lost-hours?since=3h")) == {"idle": (pytest.approx(2.4), 1)}
    assert vision.ask("bob", "GET", f"lost-hours?since={T0}&until={T0 + 1}")["causes"] == []
    assert vision.ask("bob", "GET", f"lost-hours?until={T0 - DAY_MS}")["causes"] == []
    assert vision.ask("bob", "GET", f"lost-hours?until={T0 - DAY_MS}")["judged_runs"] == 0


def test_readers_see_only_the_projects_that_they_may_read(vision: AccountsServer) -> None:
    judge(vision, run_of(vision, "a"), IDLE)
    vision.ask("bob", "POST", "entities/vision/projects", 201, json={"name": "own", "visibility": "private"})
    judge(vision, run_of(vision, "b", project="own"), STARVED)
    assert set(causes(vision.ask("bob", "GET", "lost-hours?entity=vision"))) == {"idle", "input_bound_cpu"}
    assert set(causes(vision.ask("eve", "GET", "lost-hours?entity=vision"))) == {"idle"}
    assert [each["run"] for each in vision.ask("eve", "GET", "lost-hours/runs")["runs"]] == ["a"]
    report = vision.ask("mallory", "GET", "lost-hours?entity=vision")
    assert (report["causes"], report["judged_runs"], report["waiting_runs"]) == ([], 0, 0)
    assert vision.ask("mallory", "GET", "lost-hours/runs?entity=vision")["total"] == 0
    assert vision.ask(None, "GET", "lost-hours", 401)


def test_places_lead_to_the_runs(vision: AccountsServer) -> None:
    judge(vision, run_of(vision, "a"), IDLE)
    judge(vision, run_of(vision, "b", project="faces"), replace(IDLE, device_hours=2.0))
    (team,) = vision.ask("bob", "GET", "lost-hours/places")["places"]
    assert team == {
        "entity": "vision",
        "project": None,
        "readable": None,
        "device_hours": 10.0,
        "money": None,
        "runs": 2,
    }
    first = vision.ask("bob", "GET", "lost-hours/places?by=project&limit=1&price=2")
    assert [(each["project"], each["device_hours"], each["money"]) for each in first["places"]] == [
        ("digits", 8.0, 16.0)
    ]
    second = vision.ask("bob", "GET", f"lost-hours/places?by=project&limit=1&after={first['next']}")
    assert [(each["project"], each["readable"]) for each in second["places"]] == [("faces", True)]
    assert (first["total"], second["next"]) == (2, None)
    assert vision.ask("bob", "GET", "lost-hours/places?by=project&cause=hang")["places"] == []
    (run,) = vision.ask("bob", "GET", "lost-hours/runs?project=digits")["runs"]
    assert (run["from_ms"], run["to_ms"]) == (IDLE.from_ms, IDLE.to_ms)


def test_billing_readers_see_what_the_organisation_lost(vision: AccountsServer) -> None:
    vision.ask("bob", "POST", "entities/vision/projects", 201, json={"name": "own", "visibility": "private"})
    judge(vision, run_of(vision, "a"), IDLE)
    judge(vision, run_of(vision, "b", project="own"), STARVED)
    assert vision.ask("olga", "GET", "lost-hours")["causes"] == []  # who administers all reads no runs
    assert causes(vision.ask("olga", "GET", "billing/lost-hours")) == {
        "idle": (8.0, 1),
        "input_bound_cpu": (8.0, 1),
    }
    (team,) = vision.ask("olga", "GET", "billing/lost-hours/places")["places"]
    assert (team["entity"], team["device_hours"], team["runs"]) == ("vision", 16.0, 2)
    projects = vision.ask("olga", "GET", "billing/lost-hours/places?by=project&entity=vision&cause=idle")
    assert [(each["project"], each["readable"]) for each in projects["places"]] == [("digits", False)]
    # A filter would tell what is in runs that she may not read.
    for query in ("filter=id:a", "where=config.lr>1", "text=a", "tag=x", "project=own"):
        vision.ask("olga", "GET", f"billing/lost-hours?{query}", 422)
    for name in ("ada", "bob", "eve", "mallory"):
        for path in ("billing/lost-hours", "billing/lost-hours/places?entity=vision"):
            vision.ask(name, "GET", path, 403)
    vision.ask(None, "GET", "billing/lost-hours", 401)


def test_runs_in_the_trash_do_not_count(vision: AccountsServer) -> None:
    number = run_of(vision, "a")
    judge(vision, number, IDLE)
    vision.metadata_store.runs.delete([number], T0)
    assert vision.ask("bob", "GET", "lost-hours")["causes"] == []


def test_money_is_for_those_who_may_see_prices(vision: AccountsServer) -> None:
    team = vision.accounts.teams.by_name("vision")
    number = run_of(vision, "a")
    use(vision.metadata_store, "a", TODAY, entity_id=team.id, models=("NVIDIA H100", "NVIDIA A100"))
    judge(vision, number, IDLE)
    for model, price in (("*H100*", 3_000_000), ("*A100*", 1_000_000)):
        rate = StoredRate("device_hours", model, price, "2026-01-01")
        vision.metadata_store.usage.rates.add(rate, CLI, T0)
    report = vision.ask("ada", "GET", "lost-hours?entity=vision")
    assert (report["money"], report["causes"][0]["money"], report["currency"]) == (16.0, 16.0, "EUR")
    assert vision.ask("ada", "GET", "lost-hours/runs?entity=vision")["runs"][0]["money"] == 16.0
    assert vision.ask("ada", "GET", "runs/a/findings")["findings"][0]["cost"]["money"] == 16.0
    assert vision.ask("bob", "GET", "runs/a/findings")["findings"][0]["cost"]["money"] is None
    for query in ("lost-hours?entity=vision", "lost-hours"):
        assert vision.ask("bob", "GET", query)["money"] is None
    assert vision.ask("bob", "GET", "lost-hours/runs")["runs"][0]["money"] is None
    assert vision.ask("bob", "GET", "lost-hours?price=2.5")["money"] == 20.0


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("lost-hours?since=5&until=5", "since"),
        ("lost-hours?since=-1", "since"),
        ("lost-hours?since=7y", "since"),
        ("lost-hours?price=-1", "price"),
        ("lost-hours/runs?cause=hangs", "cause"),
        ("lost-hours/runs?after=x", "after"),
        ("lost-hours/places?by=run", "by"),
        ("lost-hours/places?cause=hangs", "cause"),
    ],
)
def test_what_is_wrong_is_named(vision: AccountsServer, query: str, field: str) -> None:
    assert field in str(vision.ask("bob", "GET", query, 422))


def test_an_unknown_cause_is_refused_with_those_that_exist(vision: AccountsServer) -> None:
    assert "input_bound_cpu" in str(vision.ask("bob", "GET", "lost-hours/runs?cause=hangs", 422))


def test_the_client_and_the_command_give_the_same(
    vision: AccountsServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    judge(vision, run_of(vision, "a"), IDLE)
    judge(vision, run_of(vision, "b"), replace(IDLE, device_hours=2.0), replace(STARVED, hosts=("n2",)))
    run_of(vision, "waiting")
    bob = vision.accounts.users.by_name("bob")
    secret, _ = vision.accounts.keys.create("laptop", CLI, T0, user_id=bob.id, scope="full")
    period: dict[str, Any] = {"since_ms": T0 - 20 * HOUR_MS, "until_ms": T0 + 1}
    with Client(vision.url, secret) as client:
        lost = client.lost_hours("digits", "vision", **period, price_per_device_hour=2.0)
        assert [(each.id, each.device_hours, each.money, each.runs) for each in lost.causes] == [
            ("idle", 10.0, 20.0, 2),
            ("input_bound_cpu", 8.0, 16.0, 1),
        ]
        assert (lost.judged_runs, lost.waiting_runs, lost.money) == (2, 1, 36.0)
        monkeypatch.setattr(client_module, "PAGE_SIZE", 1)
        assert [(each.run, each.cause) for each in client.run_losses(**period)] == [
            ("b", "input_bound_cpu"),
            ("a", "idle"),
            ("b", "idle"),
        ]
        assert [each.run for each in client.run_losses(cause="idle", **period)] == ["a", "b"]
        assert client.lost_hours("other", **period).causes == ()
        assert [(each.label, each.device_hours) for each in client.place_losses("project", **period)] == [
            ("vision/digits", 18.0)
        ]
    monkeypatch.setenv("RUNVITALS_TOKEN", secret)
    monkeypatch.setenv("RUNVITALS_SERVER", vision.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    words = ["findings", "--server", vision.url, "--project", "digits", "--since", "5000w"]
    assert main([*words, "--team", "vision", "--price", "2"]) == 0
    out = capsys.readouterr().out
    assert "2 runs judged, 1 not judged yet, 18 device-hours lost" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["idle", "10", "20.00", "2", "a,", "b"] in rows
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [cause["id"] for cause in told["causes"]] == ["idle", "input_bound_cpu"]
    assert {loss["run"] for loss in told["runs"]} == {"a", "b"}
    assert main(["findings", "--team", "vision"]) == 2
    assert "--team needs --server" in capsys.readouterr().err


def test_the_command_tells_what_the_organisation_lost(
    vision: AccountsServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    judge(vision, run_of(vision, "a"), IDLE)
    judge(vision, run_of(vision, "b", project="faces"), replace(IDLE, device_hours=2.0))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("RUNVITALS_SERVER", vision.url)
    words = ["findings", "--server", vision.url, "--since", "5000w", "--organisation"]
    statuses = {}
    for name in ("olga", "bob"):
        user_id = vision.accounts.users.by_name(name).id
        secret, _ = vision.accounts.keys.create("laptop", CLI, T0, user_id=user_id, scope="full")
        monkeypatch.setenv("RUNVITALS_TOKEN", secret)
        statuses[name] = main(words), capsys.readouterr()
        if name == "olga":
            assert main([*words, "--json"]) == 0
            told = json.loads(capsys.readouterr().out)
    (status, output) = statuses["olga"]
    assert status == 0
    assert ["idle", "10", "2", "vision/digits,", "vision/faces"] in [
        line.split() for line in output.out.splitlines()
    ]
    assert [(each["project"], each["readable"]) for each in told["projects"]] == [
        ("digits", False),
        ("faces", False),
    ]
    (status, output) = statuses["bob"]
    assert (status, output.out) == (1, "")
    assert main([*words, "--project", "digits"]) == 2
    assert main(["findings", "--organisation"]) == 2
    assert "--organisation needs --server" in capsys.readouterr().err
