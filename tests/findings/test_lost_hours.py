"""Lost device-hours by cause: no hour of a device counts twice."""

from __future__ import annotations

import random

import pytest

from runvitals.findings.finding import Finding
from runvitals.findings.lost_hours import MAX_COUNTED, lost_hours
from runvitals.model.durations import HOUR_MS


def finding(
    hours: float,
    start_h: float = 0.0,
    end_h: float | None = 10.0,
    *,
    severity: str = "warning",
    devices: tuple[int, ...] = (),
    hosts: tuple[str, ...] = ("node0",),
) -> Finding:
    return Finding(
        id="idle",
        severity=severity,  # type: ignore[arg-type]
        confidence="certain",
        from_ms=int(start_h * HOUR_MS),
        to_ms=None if end_h is None else int(end_h * HOUR_MS),
        share=0.5,
        hosts=hosts,
        devices=devices,
        ranks=(),
        text="",
        evidence=(),
        device_hours=hours,
        advice="",
        docs="",
    )


UP_TO = 10 * HOUR_MS


def test_findings_at_other_times_or_of_other_devices_add_up() -> None:
    assert lost_hours([finding(3, 0, 4), finding(2, 4, 8)], UP_TO) == pytest.approx([3, 2])
    assert lost_hours([finding(3, devices=(0,)), finding(2, devices=(1,))], UP_TO) == pytest.approx([3, 2])
    other = finding(2, hosts=("node1",))
    assert lost_hours([finding(3), other], UP_TO) == pytest.approx([3, 2])


def test_the_headline_takes_the_time_that_another_has_too() -> None:
    assert lost_hours([finding(8), finding(5)], UP_TO) == pytest.approx([8, 0])
    # The one after it costs 2 devices for half of the time in which the headline costs 0.8.
    assert lost_hours([finding(8), finding(10, 0, 5)], UP_TO) == pytest.approx([8, 6])


def test_only_the_time_in_common_is_taken() -> None:
    assert lost_hours([finding(5, 0, 5), finding(8, 2, 10)], UP_TO) == pytest.approx([5, 5])


def test_a_finding_that_goes_on_counts_up_to_now() -> None:
    assert lost_hours([finding(10, 0, None), finding(2, 8, None)], UP_TO) == pytest.approx([10, 0])


def test_what_only_describes_a_run_costs_nothing() -> None:
    assert lost_hours([finding(5, severity="info"), finding(4)], UP_TO) == pytest.approx([0, 4])
    assert lost_hours([], UP_TO) == []


def test_all_together_are_at_most_the_hours_of_the_run() -> None:
    assert lost_hours([finding(8, 0, 5), finding(8, 5, 10)], UP_TO, 10.0) == pytest.approx([8, 2])
    assert lost_hours([finding(8)], UP_TO, 0.0) == [0]


@pytest.mark.parametrize("seed", range(30))
def test_the_sum_is_never_more_than_the_time_of_the_devices(seed: int) -> None:
    """However findings overlap: none costs more than its own devices, so neither do all together."""
    chance = random.Random(seed)
    count = 8
    findings = []
    for _ in range(chance.randint(1, 40)):
        start, end = sorted((chance.uniform(0, 10), chance.uniform(0, 10)))
        devices = tuple(sorted(chance.sample(range(count), chance.randint(0, count))))
        most = (len(devices) or count) * (end - start)
        findings.append(finding(chance.uniform(0, most), start, end, devices=devices))
    hours = lost_hours(findings, UP_TO, count * 10.0)
    assert sum(hours) <= count * 10.0 + 1e-9
    for each, mine in zip(findings, hours, strict=True):
        assert 0 <= mine <= each.device_hours + 1e-9
    assert hours[0] == pytest.approx(findings[0].device_hours)


def test_very_many_findings_take_bounded_time() -> None:
    hours = lost_hours([finding(1, i / 5000, 5 + i / 5000, devices=(i,)) for i in range(5000)], UP_TO)
    assert sum(each > 0 for each in hours) == MAX_COUNTED
