"""The figures of a cluster, against sums that are computed in another way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from runvitals.base.buckets import Integers
from runvitals.server.usage.covered_time import CoveredTime
from runvitals.server.usage.days import Day
from runvitals.server.usage.device_time import DeviceFigures, DeviceSeries, DeviceTime, TimedValues
from runvitals.server.usage.intervals import Interval, Share, length, union
from runvitals.server.usage.windows import Rules, window_ends
from tests.server.usage.figures.cluster import (
    MINUTE_MS,
    RULES,
    SimulatedCluster,
    SlowFigures,
    SlowMonth,
    devices,
    simulate,
    times,
)

SEVEN_DAYS = [
    (1, "UTC", "2026-11-01"),
    (2, "Europe/Berlin", "2026-10-22"),
    (3, "America/New_York", "2026-03-05"),
]
DAY, NEXT_DAY = simulate(0, "UTC", "2026-11-04", 2).days


def ends(figures: CoveredTime | DeviceTime, day: Day, chance: random.Random) -> Iterator[tuple[bool, int]]:
    """The ends of windows as they come while a day goes on, and whether the window is complete."""
    until_ms = day.start_ms
    while until_ms < day.end_ms + RULES.margin_ms:
        until_ms += chance.randrange(MINUTE_MS, 9 * 3_600_000)
        for end_ms in window_ends(day, RULES, figures.done_ms, until_ms):
            yield end_ms <= until_ms, end_ms


def covered_time(
    cluster: SimulatedCluster, day: Day, run: int, host: str, chance: random.Random
) -> list[Interval]:
    samples, covered = cluster.runs[run][host], CoveredTime(day, RULES)
    for complete, end_ms in ends(covered, day, chance):
        part = covered if complete else covered.copy()
        part.add(end_ms, times(samples, part.done_ms, end_ms))
    return covered.intervals


def device_figures(
    cluster: SimulatedCluster,
    day: Day,
    run: int,
    host: str,
    covered: list[Interval],
    chance: random.Random,
    shares: dict[str, Any] | None = None,
) -> dict[str, DeviceFigures]:
    samples, device_time = cluster.runs[run][host], DeviceTime(day, RULES, shares)
    for complete, end_ms in ends(device_time, day, chance):
        part = device_time if complete else device_time.copy()
        part.add(end_ms, devices(samples, part.done_ms, end_ms))
    return device_time.figures(covered)


@pytest.mark.parametrize(("seed", "zone", "first"), SEVEN_DAYS)
def test_the_figures_are_those_of_every_minute(seed: int, zone: str, first: str) -> None:
    cluster = simulate(seed, zone, first, 7)
    slow, chance = SlowMonth(cluster), random.Random(seed)
    found_any = False
    for day in cluster.days:
        alone = {
            (run, host): covered_time(cluster, day, run, host, chance)
            for run, hosts in cluster.runs.items()
            for host in hosts
        }
        for run, hosts in cluster.runs.items():
            tracked = union(part for host in hosts for part in alone[run, host])
            assert length(tracked) == slow.tracked.get((run, day.name), 0) * MINUTE_MS
            for host, samples in hosts.items():
                covered = alone[run, host]
                assert length(covered) == slow.host.get((run, host, day.name), 0) * MINUTE_MS
                share = Share([one for (_, other), one in alone.items() if other == host])
                shares = dict.fromkeys(samples.devices, share)
                figures = device_figures(cluster, day, run, host, covered, chance, shares)
                for device in samples.devices:
                    expected = slow.devices.get((run, device, day.name))
                    if expected is not None:
                        found_any = True
                        assert_equal(figures[device], expected)
    assert found_any


def assert_equal(figures: DeviceFigures, expected: SlowFigures) -> None:
    assert figures.share == pytest.approx(float(expected.share) * MINUTE_MS)
    assert figures.busy == pytest.approx(expected.busy * MINUTE_MS)
    assert figures.idle == pytest.approx(float(expected.idle) * MINUTE_MS)
    assert figures.measured == pytest.approx(expected.measured)
    assert figures.estimated == pytest.approx(expected.estimated)
    assert figures.unknown_ms == pytest.approx(float(expected.share - expected.known) * MINUTE_MS, abs=1)


def test_devices_never_count_more_than_the_clock() -> None:
    cluster = simulate(4, "UTC", "2026-11-01", 5)
    chance = random.Random(4)
    for day in cluster.days:
        for host in ("node1", "node2"):
            users = [run for run, hosts in cluster.runs.items() if host in hosts]
            alone = {run: covered_time(cluster, day, run, host, chance) for run in users}
            share = Share(list(alone.values()))
            parts = [
                share.between(*np.array(covered, np.int64).reshape(-1, 2).T).sum()
                for covered in alone.values()
            ]
            busy_clock = length(union(part for covered in alone.values() for part in covered))
            assert sum(parts) == pytest.approx(busy_clock, abs=1)
            assert busy_clock <= day.end_ms - day.start_ms


def test_figures_are_the_same_to_the_bit_however_they_were_added() -> None:
    cluster = simulate(5, "UTC", "2026-11-01", 4)
    for day in cluster.days:
        for run, hosts in cluster.runs.items():
            for host in hosts:
                first, second = (
                    device_figures(cluster, day, run, host, [], random.Random(seed)) for seed in (6, 7)
                )
                assert first == second


def test_a_counter_that_was_reset_loses_the_step_of_the_reset() -> None:
    t = np.arange(5, dtype=np.int64) * 1000 + DAY.start_ms
    rules = Rules(silence_ms=10_000)
    energy = TimedValues(t, np.array([100.0, 110.0, 3.0, np.nan, 5.0]))
    figures = gpu(DAY, rules, t, DeviceSeries(energy=energy))
    assert (figures.measured, figures.measured_ms, figures.unknown_ms) == (12.0, 3000, 1000)


def test_a_clock_that_was_set_back_counts_no_time_and_no_energy_twice() -> None:
    """After a reboot with a clock half an hour behind: the second monitor counts its energy from 0."""
    first = np.arange(61, dtype=np.int64) * MINUTE_MS + DAY.start_ms
    second = first + 30 * MINUTE_MS + MINUTE_MS // 2
    order = np.argsort(times := np.concatenate((first, second)))
    joules = np.concatenate((1e9 + 60.0 * np.arange(61), 60.0 * np.arange(61)))
    energy = TimedValues(times[order], joules[order])
    figures = gpu(DAY, Rules(silence_ms=5 * MINUTE_MS), times[order], DeviceSeries(energy=energy))
    assert figures.share == 90.5 * MINUTE_MS
    assert (figures.measured, figures.measured_ms) == (60 * 60.0, 60 * MINUTE_MS)
    assert figures.unknown_ms == 30.5 * MINUTE_MS


def test_time_without_energy_figures_is_not_filled_up() -> None:
    t = np.arange(11, dtype=np.int64) * 1000 + DAY.start_ms
    watts = TimedValues(t, np.array([200.0] * 4 + [np.nan] * 4 + [200.0] * 3))
    figures = gpu(DAY, Rules(silence_ms=2000), t, DeviceSeries(power=watts))
    assert (figures.share, figures.estimated) == (10_000, 1000.0)
    assert (figures.estimated_ms, figures.unknown_ms) == (5000, 5000)


def test_a_short_stretch_without_work_is_not_idle() -> None:
    minutes = np.arange(60, dtype=np.int64) * MINUTE_MS + DAY.start_ms
    use = np.full(60, 90.0)
    use[5:19] = 0.0  # 13 minutes between its first and last sample
    use[30:46] = 4.9  # 15 minutes
    figures = gpu(DAY, Rules(silence_ms=5 * MINUTE_MS), minutes, DeviceSeries(TimedValues(minutes, use)))
    assert figures.idle == 15 * MINUTE_MS


def test_an_idle_stretch_across_midnight_counts_in_both_days() -> None:
    minutes = np.arange(-10, 10, dtype=np.int64) * MINUTE_MS + DAY.end_ms
    device = DeviceSeries(TimedValues(minutes, np.zeros(20)))
    rules = Rules(silence_ms=5 * MINUTE_MS)
    assert gpu(DAY, rules, minutes, device).idle == 10 * MINUTE_MS
    assert gpu(NEXT_DAY, rules, minutes, device).idle == 9 * MINUTE_MS


def gpu(day: Day, rules: Rules, times_ms: Integers, device: DeviceSeries) -> DeviceFigures:
    """The figures of a device with these samples."""
    covered, figures = CoveredTime(day, rules), DeviceTime(day, rules)
    covered.add(day.end_ms + rules.margin_ms, times_ms)
    figures.add(day.end_ms + rules.margin_ms, {"gpu": device})
    return figures.figures(covered.intervals)["gpu"]
