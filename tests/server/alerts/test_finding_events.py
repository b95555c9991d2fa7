"""Automations and webhooks about findings, from the judge's report to the outbox."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from runvitals.findings.finding import Evidence, Finding
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.server.alerts.automations import InvalidAutomation, as_json, automation_of
from runvitals.server.alerts.delivery.automation_thread import AutomationThread
from runvitals.server.alerts.finding_watch import FindingEvents
from runvitals.server.alerts.payload_template import check_payload, fill_payload
from runvitals.server.alerts.slack_message import slack_message
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.events.finding_changes import (
    FindingChange,
    FindingClosed,
    FindingGrew,
    FindingOpened,
)
from runvitals.server.events.outbox import StoredNotification
from runvitals.server.runs.storage.writer_registration import RegisteredWriter
from tests.server.alerts.conftest import Team
from tests.server.mail.conftest import T0

WAITS = Finding(
    id="input_bound_cpu",
    severity="warning",
    confidence="certain",
    from_ms=T0,
    to_ms=None,
    share=0.57,
    hosts=("node1",),
    devices=(3,),
    ranks=(3,),
    text="The GPUs wait for the data loader <!channel>\u202e\nof node1.",
    evidence=(Evidence("gpu.3.gpu", "node1", 42.0, "%", 95.0),),
    device_hours=1.2,
    advice="Give it more workers.",
    docs="reference/findings.md#input_bound_cpu",
)


class Automated:
    """A team with automations about findings."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.events = FindingEvents(team.store, team.clock)
        self.writer = team.run("otter-1")

    def add(self, event: dict[str, Any], *actions: dict[str, Any], cooldown_h: int = 24) -> None:
        form = {
            "event": event,
            "actions": actions or [{"kind": "slack", "destination": 3}],
            "cooldown_h": cooldown_h,
        }
        by = Actor("user", "ada", self.team.ada.id)
        name, now_ms = f"about {event['kind']}", self.team.clock()
        definition = as_json(automation_of(form))
        self.team.store.alerts.automations.create(self.team.team.id, name, True, definition, by, now_ms)

    def told(self, *changes: FindingChange) -> list[StoredNotification]:
        self.events.note(changes)
        AutomationThread(self.team.store, self.team.directory, self.team.clock).react()
        return [told for told in self.team.told() if told.kind.startswith("finding")]

    def change(
        self,
        kind: type[FindingChange],
        finding: Finding = WAITS,
        writer: RegisteredWriter | None = None,
        number: int = 1,
    ) -> FindingChange:
        now_ms = self.team.clock()
        return kind((writer or self.writer).run_id, number, finding, now_ms, now_ms)


@pytest.fixture
def automated(team: Team) -> Automated:
    return Automated(team)


def test_an_automation_is_told_that_a_finding_opened(automated: Automated) -> None:
    automated.add({"kind": "finding.opened", "findings": ["input_bound_cpu"]})
    [told] = automated.told(automated.change(FindingOpened))
    assert (told.target, told.kind, told.payload["level"]) == ("slack:3", "finding.opened", "warning")
    assert told.payload["path"] == "/vision/digits/runs/otter-1"
    assert told.text == (
        "[vision/digits] otter-1: The GPUs wait for the data loader <!channel> of node1\n"
        "What to do: Give it more workers.\n"
        "You get this by the automation “about finding.opened” of team vision."
    )
    shown = json.dumps(slack_message(*told.text.split("\n", 1)))
    assert "<!channel>" not in json.loads(shown)["text"]


def test_an_automation_is_told_that_a_finding_closed(automated: Automated) -> None:
    automated.add({"kind": "finding.closed"})
    assert automated.told(automated.change(FindingOpened), automated.change(FindingGrew)) == []
    closed = replace(WAITS, to_ms=T0 + MINUTE_MS)
    [told] = automated.told(automated.change(FindingClosed, closed))
    assert told.text.partition("\n")[0].endswith("of node1 – over")


def test_a_webhook_gets_the_finding_as_in_the_api(automated: Automated) -> None:
    template = (
        '{"finding": "${finding}", "hours": "${finding_device_hours}", "run": "${run_id}",'
        ' "say": "${finding_severity} ${finding_id}: ${finding_text} ${finding_advice}",'
        ' "at": "${project_name}"}'
    )
    check_payload(template)
    automated.add({"kind": "finding.opened"}, {"kind": "webhook", "webhook": 7, "payload": template})
    [told] = automated.told(automated.change(FindingOpened))
    assert told.target == "webhook:7"
    payload = json.loads(fill_payload(told.payload["payload"], told.payload["values"]))
    assert payload["finding"] == WAITS.to_json()
    assert payload["hours"] == 1.2
    assert (payload["run"], payload["at"]) == ("otter-1", "digits")
    assert payload["say"].startswith("warning input_bound_cpu: The GPUs wait")
    inside = json.loads(fill_payload('{"text": "found: ${finding}"}', told.payload["values"]))
    assert json.loads(inside["text"].removeprefix("found: ")) == WAITS.to_json()


def test_the_cool_down_is_that_of_a_finding_of_a_run(automated: Automated) -> None:
    automated.add({"kind": "finding.opened"})
    idle = replace(WAITS, id="idle", text="The GPUs are idle.")
    other = automated.team.run("otter-2")
    opened = [
        automated.change(FindingOpened),
        automated.change(FindingOpened, idle, number=2),
        automated.change(FindingOpened, writer=other),
    ]
    assert len(automated.told(*opened)) == 3
    automated.team.wait(MINUTE_MS)
    assert automated.told(automated.change(FindingOpened)) == []
    automated.team.wait(24 * HOUR_MS)
    assert len(automated.told(automated.change(FindingOpened))) == 1


def test_a_report_that_is_repeated_is_told_once(automated: Automated) -> None:
    automated.add({"kind": "finding.opened"}, cooldown_h=0)
    change = automated.change(FindingOpened)
    assert len(automated.told(change)) == 1
    assert automated.told(change) == []


def test_nobody_is_told_of_what_arrives_late(automated: Automated) -> None:
    automated.add({"kind": "finding.opened"})
    change = automated.change(FindingOpened)
    automated.team.wait(2 * HOUR_MS)
    assert automated.told(change) == []


def test_a_finding_can_stop_and_tag_its_run(automated: Automated) -> None:
    automated.add({"kind": "finding.opened"}, {"kind": "stop"}, {"kind": "tag", "tag": "starved"})
    targets = sorted(told.target for told in automated.told(automated.change(FindingOpened)))
    assert targets == [f"stop:{automated.writer.run_id}", f"tag:{automated.writer.run_id}"]


def test_an_unknown_finding_is_refused_with_those_that_exist() -> None:
    event = {"kind": "finding.opened", "findings": ["waiting"]}
    with pytest.raises(InvalidAutomation, match=r"no finding 'waiting'; expected some of .*input_bound_cpu"):
        automation_of({"event": event, "actions": [{"kind": "stop"}]})
