"""Each signal that a rule may miss has a remedy, and none is there for nothing."""

from __future__ import annotations

import re

import pytest

from runvitals.findings.judge import judge
from runvitals.findings.remedies import PRESSURE, REMEDIES, remedies
from runvitals.findings.rule import FindingRule
from runvitals.findings.rules import RULES
from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.host.pressure import WITHOUT_PSI
from runvitals.tools.doctor.remedies import remedy
from tests.findings.scenarios.course import Course

VENDORS = ("h100", "a100", "mi300x", "tpu", "trn")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_a_rule_needs_has_a_remedy(rule: FindingRule) -> None:
    assert [key for key in rule.needs if key not in REMEDIES] == []


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("devices", [0, 1, 2])
@pytest.mark.parametrize("step_s", [0.0, 2.0])
def test_what_cannot_be_decided_tells_how_it_could_be(vendor: str, devices: int, step_s: float) -> None:
    course = Course(vendor, minutes=10, interval_s=5, devices=devices, step_s=step_s)
    undecided = judge(course.run()).undecided
    assert undecided
    for each in undecided:
        assert remedies(each.needs), f"{each.id}: {each.needs}"


def test_signals_are_metrics_or_what_the_training_logs() -> None:
    for key in REMEDIES:
        assert key.startswith("a logged ") or DEFINITIONS.find(re.sub(r"{\w+}", "0", key)), key


def test_doctor_gives_the_same_remedy() -> None:
    assert remedy(WITHOUT_PSI) == PRESSURE == REMEDIES["io.pressureSeconds"]


def test_a_remedy_is_given_once() -> None:
    assert len(remedies(["gpu.{i}.smActive", "gpu.{i}.dramActive", "no such signal"])) == 1
