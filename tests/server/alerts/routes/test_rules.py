"""Rules of a team over HTTP and on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runvitals.cli import main
from runvitals.server.alerts.routes.rules import MAX_TRIED, TRIED
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.store.samples.interface import SampleBatch
from tests.patience import PATIENCE_S, eventually
from tests.server.accounts_server import T0, AccountsServer

RULES = "entities/vision/alert-rules"
IDLE: dict[str, Any] = {
    "name": "idle",
    "for": "1m",
    "condition": {"kind": "threshold", "metric": "gpu.*.gpu", "operator": "<", "value": 5},
}


def store_samples(server: AccountsServer, values: list[float], uid: str = "otter-1") -> SampleBatch:
    """A run of bob, with samples of the last seconds."""
    team = server.accounts.teams.by_name("vision")
    sender = Sender(team.id, author_id=server.accounts.users.by_name("bob").id)
    registration = WriterRegistration(uid, "monitor.node1.1", "digits", sender=sender)
    [writer] = server.metadata_store.writers.join([registration], T0)
    keys = server.metadata_store.metrics.schema(["gpu.0.gpu"])
    server.metadata_store.metrics.record_schemas([(writer.writer_id, keys.id)])
    t = T0 - 1000 * np.arange(len(values), dtype=np.int64)[::-1]
    batch = SampleBatch(writer.lane_id, writer.writer_id, 0, keys.metric_ids, t, np.array(values)[:, None])
    server.store.append([batch])
    server.app.services.access.rights_changed()
    return batch


def test_rules_are_made_changed_and_deleted(vision: AccountsServer) -> None:
    assert vision.ask("bob", "GET", RULES)["rules"] == []
    assert len(vision.ask("bob", "GET", RULES)["ready"]) >= 9
    vision.ask("bob", "POST", RULES, 403, json={"rule": IDLE})
    rule = vision.ask("ada", "POST", RULES, 201, json={"rule": IDLE})
    assert (rule["name"], rule["enabled"], rule["rule"]) == ("idle", True, IDLE)
    assert "rule.name" in vision.ask("ada", "POST", RULES, 409, json={"rule": IDLE})["fields"]
    path = f"{RULES}/{rule['id']}"
    muted = vision.ask("ada", "PATCH", path, json={"muted_until_ms": T0 + 1})
    assert muted["muted_until_ms"] == T0 + 1
    assert vision.ask("ada", "PATCH", path, json={"enabled": False})["muted_until_ms"] == T0 + 1
    assert vision.ask("ada", "PATCH", path, json={"muted_until_ms": None})["muted_until_ms"] is None
    changed = vision.ask("ada", "PATCH", path, json={"rule": {**IDLE, "name": "very idle"}})
    assert changed["name"] == "very idle"
    assert vision.ask("bob", "GET", path)["name"] == "very idle"
    assert vision.ask("ada", "POST", f"{path}/test", 202, json={})["target"].startswith("user:")
    vision.ask("ada", "DELETE", path, 204)
    vision.ask("ada", "GET", path, 404)
    actions = [action for action in vision.actions() if action.startswith("alert_rule")]
    assert actions[0] == "alert_rule.create"
    assert actions[-1] == "alert_rule.delete"


def test_users_have_rules_in_their_own_space(vision: AccountsServer) -> None:
    own = "entities/bob/alert-rules"
    rule = vision.ask("bob", "POST", own, 201, json={"rule": {**IDLE, "tell": ["author"]}})
    listed = vision.ask("bob", "GET", own)
    assert (listed["rules"][0]["id"], listed["may"]) == (rule["id"], ["automation:manage"])
    assert vision.ask("bob", "GET", f"{own}/history")["firings"] == []
    assert vision.ask("bob", "POST", f"{own}/dry-run", json={"rule": IDLE})["runs"] == 0
    for stranger in ("ada", "olga"):
        vision.ask(stranger, "GET", own, 404)
        vision.ask(stranger, "POST", own, 404, json={"rule": IDLE})


def test_only_administrators_of_the_organisation_make_rules_about_all_teams(vision: AccountsServer) -> None:
    everywhere = {"rule": {**IDLE, "name": "all idle", "everywhere": True}}
    for path in (RULES, f"{RULES}/dry-run"):
        assert "all teams" in vision.ask("ada", "POST", path, 403, json=everywhere)["error"]
    rule = vision.ask("olga", "POST", RULES, 201, json=everywhere)
    assert rule["rule"]["everywhere"] is True
    path = f"{RULES}/{rule['id']}"
    vision.ask("ada", "PATCH", path, 403, json=everywhere)
    store_samples(vision, [50.0] * 10 + [1.0] * 70)
    path_of_trial, request = f"{RULES}/dry-run", {**everywhere, "days": 1}
    assert vision.ask("olga", "POST", path_of_trial, json=request)["runs"] == 0  # she may read none
    vision.accounts.members.add("vision", "olga", "viewer", CLI, T0)
    assert vision.ask("olga", "POST", path_of_trial, json=request)["times"] == 1
    vision.ask("ada", "DELETE", path, 204)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "rule.name"),
        ({"name": "idle\r\nBcc: eve@lab.example"}, "rule.name"),
        ({"severity": "loud"}, "rule.severity"),
        ({"for": "soon"}, "rule.for"),
        ({"filter": "state:none<"}, "rule.filter"),
        ({"tell": ["everybody"]}, "rule.tell[0]"),
        ({"tell": ["author", "apprise:1"]}, "rule.tell[1]"),
        ({"tell": ["slack:77"]}, "rule.tell[0]"),
        ({"tell": ["members", "webhook:77"]}, "rule.tell[1]"),
        ({"maintenance": [{"days": ["someday"]}]}, "rule.maintenance"),
        ({"colour": "red"}, "rule.colour"),
        ({"condition": {}}, "rule.condition.kind"),
        ({"condition": {**IDLE["condition"], "value": "low"}}, "rule.condition.value"),
        ({"condition": {**IDLE["condition"], "clear": 1}}, "rule.condition.clear"),
        ({"condition": {**IDLE["condition"], "statistic": "mean"}}, "rule.condition.window"),
    ],
)
def test_mistakes_in_rules_are_named(vision: AccountsServer, change: Any, field: str) -> None:
    response = vision.ask("ada", "POST", RULES, 422, json={"rule": {**IDLE, **change}})
    assert field in response["fields"]


def test_a_dry_run(vision: AccountsServer) -> None:
    store_samples(vision, [50.0] * 10 + [1.0] * 70 + [50.0] * 10 + [2.0] * 70)
    body = {"rule": IDLE, "days": 1}
    result = vision.ask("bob", "POST", f"{RULES}/dry-run", json=body)
    assert (result["times"], result["runs"]) == (2, 1)
    newest, first = result["firings"]
    assert (first["run"], first["key"], first["host"], first["value"]) == ("otter-1", "gpu.0.gpu", "node1", 1)
    assert first["ended_ms"] - first["fired_ms"] == 10_000
    assert newest["ended_ms"] is None
    never = {**IDLE, "filter": "tag:nothing"}
    assert vision.ask("bob", "POST", f"{RULES}/dry-run", json={"rule": never})["times"] == 0


def test_few_dry_runs_at_a_time(vision: AccountsServer) -> None:
    body = {"rule": IDLE, "days": 1}
    for _ in range(MAX_TRIED):
        assert TRIED.acquire(timeout=PATIENCE_S)
    try:
        refused = vision.ask("bob", "POST", f"{RULES}/dry-run", 429, json=body)
        assert "try again" in refused["error"]
    finally:
        for _ in range(MAX_TRIED):
            TRIED.release()
    assert vision.ask("bob", "POST", f"{RULES}/dry-run", json=body)["runs"] == 0


def tried(server: AccountsServer, condition: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """When a rule would have fired, the first time first."""
    rule = {"name": "tried", "condition": condition, **more}
    result = server.ask("bob", "POST", f"{RULES}/dry-run", json={"rule": rule, "days": 1})
    assert result["times"] == len(result["firings"])
    return list(reversed(result["firings"]))


def test_a_dry_run_of_silence(vision: AccountsServer) -> None:
    values = np.full(400, 50.0)
    batch = store_samples(vision, [50.0] * 10)
    t = T0 - 1000 * np.array([*range(1000, 900, -1), *range(700, 600, -1), *range(50, 9, -1)], np.int64)
    vision.store.append([replace(batch, seq=1, t=t, values=values[: len(t), None])])
    firings = tried(vision, {"kind": "silence", "metric": "gpu.*.gpu"}, **{"for": "3m"})
    assert [(firing["fired_ms"], firing["ended_ms"], firing["value"]) for firing in firings] == [
        (T0 - 721_000, T0 - 700_000, None),
        (T0 - 421_000, T0 - 50_000, None),
    ]
    assert [
        firing["key"] for firing in tried(vision, {"kind": "silence", "of": "host"}, **{"for": "3m"})
    ] == [
        "",
        "",
    ]
    assert tried(vision, {"kind": "silence", "of": "steps"}, **{"for": "3m"}) == []
    host = {"kind": "silence", "of": "host"}
    busy = {"busy_metric": "gpu.*.gpu", "busy_value": 60}
    assert tried(vision, {**host, **busy}, **{"for": "3m"}) == []


def test_a_dry_run_of_a_silent_rank(vision: AccountsServer) -> None:
    sender = Sender(
        vision.accounts.teams.by_name("vision").id, author_id=vision.accounts.users.by_name("bob").id
    )
    registered = [
        WriterRegistration("otter-1", f"train.node1.{rank}", "digits", rank=rank, sender=sender)
        for rank in (0, 1)
    ]
    writers = vision.metadata_store.writers.join(registered, T0)
    keys = vision.metadata_store.metrics.schema(["loss"])
    vision.metadata_store.metrics.record_schemas([(writer.writer_id, keys.id) for writer in writers])
    for writer, first in zip(writers, (0, 300), strict=True):  # rank 1 has logged nothing for 5 minutes
        t = T0 - 1000 * np.arange(first, 600, dtype=np.int64)[::-1]
        rows = np.ones((len(t), 1))
        vision.store.append([SampleBatch(writer.lane_id, writer.writer_id, 0, keys.metric_ids, t, rows)])
    vision.app.services.access.rights_changed()
    [firings] = tried(vision, {"kind": "silence", "of": "rank"}, **{"for": "2m"})
    assert (firings["key"], firings["fired_ms"], firings["ended_ms"]) == ("rank 1", T0 - 180_000, None)


def test_a_dry_run_of_a_straggler(vision: AccountsServer) -> None:
    team = vision.accounts.teams.by_name("vision")
    sender = Sender(team.id, author_id=vision.accounts.users.by_name("bob").id)
    keys = vision.metadata_store.metrics.schema([f"gpu.{number}.powerWatts" for number in range(4)])
    registration = WriterRegistration("otter-1", "monitor.node1.1", "digits", sender=sender)
    [writer] = vision.metadata_store.writers.join([registration], T0)
    vision.metadata_store.metrics.record_schemas([(writer.writer_id, keys.id)])
    rows = np.full((250, 4), 300.0)
    rows[40:200, 2] = 150.0
    t = T0 - 1000 * np.arange(250, dtype=np.int64)[::-1]
    vision.store.append([SampleBatch(writer.lane_id, writer.writer_id, 0, keys.metric_ids, t, rows)])
    vision.app.services.access.rights_changed()
    condition = {
        "kind": "spread",
        "metric": "gpu.*.powerWatts",
        "window": "20s",
        "by": 15,
        "direction": "down",
    }
    [firings] = tried(vision, condition, **{"for": "1m"})
    assert firings["key"] == "gpu.2.powerWatts"
    assert 60_000 <= firings["fired_ms"] - int(t[40]) <= 90_000
    assert 0 <= firings["ended_ms"] - int(t[200]) <= 30_000


def test_a_rule_fires_on_the_server(vision: AccountsServer) -> None:
    vision.ask("ada", "POST", RULES, 201, json={"rule": {**IDLE, "for": 0, "tell": ["author"]}})
    vision.clock.now_ms += 10_000
    queue = vision.app.services.alerting.rule_watch.queue
    eventually(lambda: queue.is_used)
    queue.add([store_samples(vision, [1.0])])
    vision.clock.now_ms += 10_000
    eventually(lambda: vision.ask("bob", "GET", f"{RULES}/history")["firings"])
    [fired] = vision.ask("bob", "GET", f"{RULES}/history?project=digits&firing=true")["firings"]
    assert (fired["rule"], fired["run"], fired["key"], fired["ended_ms"]) == (
        "idle",
        "otter-1",
        "gpu.0.gpu",
        None,
    )
    assert fired["notified"] == "author"
    history = f"{RULES}/history"

    def sent() -> list[dict[str, Any]]:
        of_firing: list[dict[str, Any]] = vision.ask("ada", "GET", history)["firings"][0]["notifications"]
        return of_firing

    eventually(lambda: [notification["state"] for notification in sent()] == ["dropped"])
    [mail] = sent()
    assert (mail["channel"], mail["receiver"], mail["error"]) == ("user", "bob", "this server sends no mail")
    again = f"{history}/{fired['id']}/notifications/{mail['id']}/send-again"
    vision.ask("bob", "POST", again, 403, json={})
    vision.ask("ada", "POST", f"{history}/{fired['id']}/notifications/77/send-again", 404, json={})
    assert vision.ask("ada", "POST", again, json={})["state"] == "pending"
    assert vision.ask("bob", "GET", history)["firings"][0]["notifications"][0]["error"] is None
    [rules] = vision.ask("bob", "GET", RULES)["rules"]
    assert (rules["state"], rules["firing"]) == ("firing", 1)
    assert vision.ask("bob", "GET", f"{RULES}/history?project=other")["firings"] == []


def test_the_command_line(
    vision: AccountsServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = vision.accounts.users.by_name("ada")
    secret, _ = vision.accounts.keys.create("laptop", CLI, T0, user_id=ada.id, scope="full")
    narrow, _ = vision.accounts.keys.create("node", CLI, T0, user_id=ada.id, scope="write")
    monkeypatch.setenv("RUNVITALS_TOKEN", narrow)
    monkeypatch.setenv("RUNVITALS_SERVER", vision.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    store_samples(vision, [1.0] * 70)
    file = tmp_path / "rules.toml"
    file.write_text(
        '[[rule]]\nname = "idle"\nfor = "1m"\n[rule.condition]\nkind = "threshold"\nmetric = "gpu.*.gpu"\n'
        'operator = "<"\nvalue = 5\n'
    )

    assert main(["alerts", "apply", "vision", str(file)]) == 1
    assert (
        "automation:manage for team or user 'vision', which a key of the scope write"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("RUNVITALS_TOKEN", secret)

    def alerts(*arguments: str) -> str:
        assert main(["alerts", "--server", vision.url, *arguments]) == 0
        return capsys.readouterr().out

    assert alerts("check", "vision", str(file)) == "idle: would have fired once in 1 runs\n"
    assert alerts("apply", "vision", str(file)) == "added idle\n"
    assert alerts("apply", "vision", str(file)) == ""
    file.write_text(file.read_text().replace("value = 5", "value = 4"))
    assert alerts("apply", "vision", str(file)) == "changed idle\n"
    assert alerts("mute", "vision", "idle", "--hours", "0") == "idle is no longer muted\n"
    assert alerts("test", "vision", "idle") == "a test is on its way to you\n"
    assert [rule["name"] for rule in json.loads(alerts("list", "vision", "--json"))] == ["idle"]
    assert "warning" in alerts("list", "vision")
    assert "FIRED" in alerts("history", "vision")
    bad = tmp_path / "bad.toml"
    bad.write_text(file.read_text().replace("idle", "new") + '[[rule]]\nname = "b"\nseverity = "worst"\n')
    assert main(["alerts", "--server", vision.url, "apply", "vision", str(bad)]) == 1
    wrong = "severity: expected one of info, warning, error; condition: expected an object"
    assert f"bad.toml: rule 'b': {wrong}" in capsys.readouterr().err
    assert [rule["name"] for rule in json.loads(alerts("list", "vision", "--json"))] == ["idle"]
    bad.write_text(file.read_text().replace("[rule.condition]", 'tell = ["slack:9"]\n[rule.condition]'))
    assert main(["alerts", "--server", vision.url, "apply", "vision", str(bad)]) == 1
    assert "bad.toml: rule 'idle': rule.tell[0]: " in capsys.readouterr().err
    empty = tmp_path / "rules.yaml"
    empty.write_text("rule: [\n")
    assert main(["alerts", "--server", vision.url, "apply", "vision", str(empty)]) == 1
    assert "rules.yaml: expected the node content, but found '<stream" in capsys.readouterr().err
    empty.write_text("rule: []\n")
    assert alerts("apply", "vision", str(empty), "--prune") == "deleted idle\n"


def test_routes_by_severity(vision: AccountsServer) -> None:
    alerts = "teams/vision/alerts"
    shown = vision.ask("ada", "PUT", alerts, json={"routes": {"error": ["members"], "info": []}})
    assert shown["routes"] == {"info": [], "warning": [], "error": ["members"]}
    assert [target["target"] for target in shown["targets"]] == ["author", "members"]
    assert vision.ask("bob", "GET", alerts)["routes"]["error"] == ["members"]
    for wrong, field in (("slack:77", "routes.error[0]"), ("everybody", "routes.error")):
        response = vision.ask("ada", "PUT", alerts, 422, json={"routes": {"error": [wrong]}})
        assert field in response["fields"]
