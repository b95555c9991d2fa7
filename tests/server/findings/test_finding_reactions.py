"""What is found of a run reaches rules and automations of a server, from the judge on."""

from __future__ import annotations

from dataclasses import replace

from runvitals.findings.finding import RULES_VERSION, Findings
from runvitals.model.durations import MINUTE_MS
from runvitals.server.alerts.delivery.automation_thread import AutomationThread
from runvitals.server.findings.kept_result import JudgedRun
from tests.server.accounts_server import T0, AccountsServer
from tests.server.findings.test_lost_hours import IDLE, run_of


def test_the_server_tells_rules_and_automations_what_it_finds(vision: AccountsServer) -> None:
    number = run_of(vision, "a")
    hook = {"event": {"kind": "finding.opened"}, "actions": [{"kind": "mail", "members": ["bob"]}]}
    vision.ask("ada", "POST", "teams/vision/automations", 201, json={"name": "idle", **hook})
    rule = {"name": "idle", "for": "1m", "condition": {"kind": "finding", "findings": ["idle"]}}
    vision.ask("ada", "POST", "entities/vision/alert-rules", 201, json={"rule": rule})
    idle = replace(IDLE, from_ms=T0 - 5 * MINUTE_MS, to_ms=None)
    judged = JudgedRun(number, RULES_VERSION, T0, T0, T0, False, Findings("idle", "", [idle]), 80.0)
    vision.app.services.findings.keep(judged)
    vision.app.services.alerting.finding_watch.evaluate()
    [fired] = vision.ask("bob", "GET", "entities/vision/alert-rules/history")["firings"]
    assert (fired["rule"], fired["key"], fired["ended_ms"]) == ("idle", "idle", None)
    store = vision.metadata_store
    AutomationThread(store, vision.app.services.access.directory, vision.clock).react()
    told = [each for each in store.alerts.outbox.due(T0 + MINUTE_MS, 100) if each.kind == "finding.opened"]
    assert [each.target for each in told] == ["member:bob"]
    assert vision.app.services.alerting.finding_watch.thread in vision.app.services.alerting.threads
