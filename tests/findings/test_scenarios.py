"""Labelled runs: what is wrong with sick ones is said, and healthy ones are not accused."""

from __future__ import annotations

import warnings
from functools import cache

import pytest

from runvitals.findings.finding import Findings
from runvitals.findings.judge import judge
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rules import RULES
from tests.findings.scenarios.course import Scenario
from tests.findings.scenarios.healthy import healthy_runs
from tests.findings.scenarios.sick import sick, sick_runs

SICK_RUNS = list(sick_runs(seeds=(1,), intervals_s=(5.0,)))
HEALTHY_RUNS = list(healthy_runs(seeds=(1,), intervals_s=(5.0,)))


def label(scenario: Scenario) -> str:
    """The name of a scenario as a test's id."""
    return scenario.name


@pytest.fixture(autouse=True)
def _strict() -> None:
    """Let NumPy's warnings of empty slices and comparisons with NaN fail a test."""
    warnings.simplefilter("error")


@cache
def judged(name: str) -> tuple[ObservedRun, Findings]:
    """A sick run and the findings about it, judged once."""
    run = next(each for each in SICK_RUNS if each.name == name).course.run()
    return run, judge(run)


@pytest.mark.parametrize("scenario", SICK_RUNS, ids=label)
def test_a_sick_run_is_found_out(scenario: Scenario) -> None:
    _, findings = judged(scenario.name)
    accused = {finding.id for finding in findings.findings if finding.severity != "info"}
    assert set(scenario.expected) <= accused, findings.text
    assert accused <= {*scenario.expected, *scenario.allowed}
    assert findings.verdict in {*scenario.expected, *scenario.allowed}


@pytest.mark.parametrize("scenario", HEALTHY_RUNS, ids=label)
def test_a_healthy_run_is_not_accused(scenario: Scenario) -> None:
    findings = judge(scenario.course.run())
    assert [finding.text for finding in findings.findings if finding.severity != "info"] == []
    assert findings.verdict == "healthy"


def test_every_rule_has_sick_runs_or_describes() -> None:
    """Rules that only describe are in `test_reports.py`."""
    described = {
        "power_capped", "sensor_implausible", "memory_bound", "compute_bound", "missing_samples",
    }  # fmt: skip
    assert {rule.id for rule in RULES} - described == {name.partition(" ")[0] for name in sick}


def test_healthy_runs_are_at_least_as_many() -> None:
    assert len(HEALTHY_RUNS) >= len(SICK_RUNS) * 0.9


@pytest.mark.parametrize("scenario", [each for each in SICK_RUNS if "h100" in each.name], ids=label)
def test_evidence_and_advice_are_there(scenario: Scenario) -> None:
    run, findings = judged(scenario.name)
    for finding in findings.findings:
        assert finding.evidence, finding.id
        assert finding.text.endswith(".")
        assert finding.advice.endswith(".")
        assert 0 <= finding.share <= 1
        assert run.started_ms <= finding.from_ms < (finding.to_ms or run.now_ms)
        assert finding.device_hours <= len(run.devices) * run.duration_ms / 3_600_000 * 1.01
        assert set(finding.hosts) <= {host.name for host in run.hosts}
