"""Workloads are judged rightly, whole and at moments of their course."""

from __future__ import annotations

import json
import warnings
from functools import cache

import pytest

from runvitals.findings.finding import Finding, Findings
from runvitals.findings.judge import judge
from runvitals.findings.observed_run import ObservedRun
from tests.findings.workloads import vendors
from tests.findings.workloads.healthy import healthy
from tests.findings.workloads.sick import sick
from tests.findings.workloads.workload import MOMENTS, START_MS, Build, Label, Workload

HEALTHY_RUNS = [pytest.param(build, id=name) for name, build in (healthy | vendors.healthy).items()]
SICK_RUNS = [pytest.param(build, id=name) for name, build in (sick | vendors.sick).items()]
TOLERANCE_S = 300.0
MANY_SERIES = 400


@pytest.fixture(autouse=True)
def _strict() -> None:
    """Let NumPy's warnings of empty slices and comparisons with NaN fail a test."""
    warnings.simplefilter("error")


@cache
def made(build: Build) -> Workload:
    """Make a workload once."""
    return build()


def accused(findings: Findings) -> dict[str, Finding]:
    """The findings that accuse, by id."""
    return {each.id: each for each in findings.findings if each.severity != "info"}


def accused_live(workload: Workload) -> list[tuple[float, dict[str, Finding]]]:
    """What is accused at each moment while it goes on, in seconds from its start.

    Those of many vendors differ from the others in what they measure, and large ones in their devices, not in
    their course: they are judged at fewer moments.
    """
    every = 1 if sum(map(len, workload.series.values())) < MANY_SERIES else 2
    if workload.name in vendors.healthy | vendors.sick:
        every = 3
    moments = [share * workload.duration_s for share in MOMENTS[1 if every > 1 else 0 :: every]]
    return [(at, accused(judge(workload.run(at)))) for at in moments]


@pytest.mark.parametrize("build", HEALTHY_RUNS)
def test_a_healthy_workload_is_not_accused(build: Build) -> None:
    workload = made(build)
    findings = judge(workload.run())
    assert [each.text for each in accused(findings).values()] == []
    assert findings.verdict in (workload.label.verdicts or ["healthy"])


@pytest.mark.parametrize("build", HEALTHY_RUNS)
def test_a_healthy_workload_is_not_accused_while_it_goes_on(build: Build) -> None:
    said = {
        f"{at / 60:.0f} min: {each.text}"
        for at, findings in accused_live(made(build))
        for each in findings.values()
    }
    assert said == set()


@pytest.mark.parametrize("build", SICK_RUNS)
def test_what_is_wrong_is_found(build: Build) -> None:
    workload = made(build)
    label = workload.label
    run = workload.run()
    findings = judge(run)
    json.dumps(findings.to_json(), allow_nan=False)
    found = {each.id: each for each in findings.findings}
    accusing = accused(findings)
    expected = set(label.expected)
    assert expected & set(found if label.described else accusing), findings.text
    assert set(accusing) <= (set() if label.described else expected) | set(label.allowed)
    verdicts = set(label.verdicts) or ({"healthy"} if label.described else expected)
    assert findings.verdict in verdicts
    check_extent(label, next(each for each in findings.findings if each.id in expected), run)


def check_extent(label: Label, finding: Finding, run: ObservedRun) -> None:
    """Compare when, where and on what a finding was with the label."""
    tolerance_s = TOLERANCE_S + 2 * run.windows.width_s
    if label.from_s is not None:
        assert (finding.from_ms - START_MS) / 1000 == pytest.approx(label.from_s, abs=tolerance_s)
    if label.open:
        assert finding.to_ms is None
    if label.to_s is not None:
        assert finding.to_ms is not None
        assert (finding.to_ms - START_MS) / 1000 == pytest.approx(label.to_s, abs=tolerance_s)
    if label.devices is not None:
        assert set(finding.devices) == set(label.devices)
    if label.named_hosts is not None:
        assert set(finding.hosts) == set(label.named_hosts)


@pytest.mark.parametrize("build", SICK_RUNS)
def test_nothing_else_is_said_while_it_goes_on(build: Build) -> None:
    workload = made(build)
    label = workload.label
    expected = set() if label.described else set(label.expected)
    for at, findings in accused_live(workload):
        said = {name: each.text for name, each in findings.items()}
        assert set(said) <= expected | set(label.allowed), f"after {at / 60:.0f} min: {said}"
        if at < label.not_before_s:
            assert not expected & set(said), f"after {at / 60:.0f} min, too early: {said}"
