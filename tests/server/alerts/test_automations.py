"""Which automations are valid, and what they are about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runvitals.server.alerts.automations import EventFacts, InvalidAutomation, as_json, automation_of, matches

STOP = {"kind": "stop"}
FAILED = EventFacts(
    "run.state", "run:1", "k", project="digits", name="resnet-7", author="ada", tags=("gpu",), state="failed"
)
MODEL = EventFacts("artifact.alias", "artifact:1", "k", alias="production", collection="mnist", type="model")

HANG = replace(FAILED, kind="finding.opened", finding="hang", finding_severity="critical")


def definition(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"event": event, "actions": [{"kind": "slack", "destination": 1}], **more}


def on_failure(**wanted: Any) -> dict[str, Any]:
    return definition({"kind": "run.state", "states": ["failed", "crashed"]}, filter=wanted)


def test_what_is_left_out_is_filled_in() -> None:
    form = as_json(automation_of(definition({"kind": "metric.threshold", "metric": "loss", "value": 1})))
    assert form["event"] == {
        "kind": "metric.threshold",
        "metric": "loss",
        "value": 1.0,
        "comparison": ">",
        "statistic": "last",
        "window": 1,
    }
    assert (form["cooldown_h"], form["filter"]["run_name"]) == (24, "")
    assert as_json(automation_of(form)) == form


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "event"),
        (definition({"kind": "moon.phase"}), "event.kind"),
        (definition({"kind": "run.state", "states": ["sad"]}), "event.states[0]"),
        (definition({"kind": "run.state", "states": []}), "event.states"),
        (definition({"kind": "run.tag", "tag": "("}), "event.tag"),
        (definition({"kind": "run.tag", "tag": "x" * 201}), "event.tag"),
        (on_failure(run_name="["), "filter.run_name"),
        (on_failure(colour="red"), "filter"),
        (definition({"kind": "artifact.version"}, actions=[STOP]), "actions"),
        (definition({"kind": "run.tag", "tag": "a"}, actions=[]), "actions"),
        (definition({"kind": "run.tag", "tag": "a"}, cooldown_h=169), "cooldown_h"),
        (definition({"kind": "metric.z_score", "metric": "loss", "value": 0}), "event.value"),
        (definition({"kind": "usage.threshold", "percent": 0}), "event.percent"),
        (definition({"kind": "finding.opened", "findings": ["hangs"]}), "event.findings"),
        (definition({"kind": "finding.closed", "severity": "error"}), "event.severity"),
        (definition({"kind": "usage.threshold"}, filter={"projects": ["digits"]}), "filter"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidAutomation) as raised:
        automation_of(wrong)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("wrong", "field", "allowed"),
    [
        (definition({"kind": "device.lost"}), "event.kind", "run.state, run.tag"),
        (
            definition({"kind": "finding"}, actions=[{"kind": "pager", "destination": 1}]),
            "actions[0].kind",
            "slack, webhook, apprise, mail, stop, tag",
        ),
    ],
)
def test_a_kind_that_does_not_exist_is_answered_with_those_that_do(
    wrong: dict[str, Any], field: str, allowed: str
) -> None:
    with pytest.raises(InvalidAutomation, match=f"; expected one of {allowed}") as raised:
        automation_of(wrong)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("run_filter", "is_meant"),
    [
        ({}, True),
        ({"projects": ["digits", "other"]}, True),
        ({"projects": ["other"]}, False),
        ({"run_name": "^resnet-[0-9]+$"}, True),
        ({"run_name": "vit"}, False),
        ({"author": "ada"}, True),
        ({"author": "bob"}, False),
        ({"tag": "gpu"}, True),
        ({"tag": "cpu"}, False),
    ],
)
def test_filters(run_filter: dict[str, Any], is_meant: bool) -> None:
    assert matches(automation_of(on_failure(**run_filter)), FAILED) is is_meant


@pytest.mark.parametrize(
    ("event", "facts", "is_meant"),
    [
        ({"kind": "run.state", "states": ["failed"]}, replace(FAILED, state="finished"), False),
        ({"kind": "run.tag", "tag": "failed"}, FAILED, False),
        ({"kind": "run.tag", "tag": "^best"}, replace(FAILED, kind="run.tag", tag="best-1"), True),
        ({"kind": "artifact.alias", "alias": "^production$"}, MODEL, True),
        ({"kind": "artifact.alias", "alias": "^production$"}, replace(MODEL, alias="production-2"), False),
        ({"kind": "artifact.alias", "alias": "", "collection": "cifar"}, MODEL, False),
        ({"kind": "artifact.version", "type": "model"}, replace(MODEL, kind="artifact.version"), True),
        ({"kind": "registry.link", "collection": "x"}, replace(MODEL, kind="registry.link"), False),
        ({"kind": "usage.threshold"}, EventFacts("usage.threshold", "team:1", "k", percent=85), True),
        ({"kind": "usage.threshold"}, EventFacts("usage.threshold", "team:1", "k", percent=84), False),
        ({"kind": "device.silent"}, replace(FAILED, kind="device.silent"), True),
        ({"kind": "finding.opened"}, HANG, True),
        ({"kind": "finding.opened", "findings": ["idle", "hang"], "severity": "critical"}, HANG, True),
        ({"kind": "finding.opened", "findings": ["idle"]}, HANG, False),
        (
            {"kind": "finding.opened", "severity": "critical"},
            replace(HANG, finding_severity="warning"),
            False,
        ),
        ({"kind": "finding.opened"}, replace(HANG, finding_severity="info"), False),
        ({"kind": "finding.closed"}, HANG, False),
        ({"kind": "finding.closed"}, replace(HANG, kind="finding.closed"), True),
        (
            {"kind": "device.silent", "host": "^node2"},
            replace(FAILED, kind="device.silent", host="node1"),
            False,
        ),
        ({"kind": "finding", "name": "idle"}, replace(FAILED, kind="finding", rule="gpu idle"), True),
    ],
)
def test_events(event: dict[str, Any], facts: EventFacts, is_meant: bool) -> None:
    assert matches(automation_of(definition(event)), facts) is is_meant
