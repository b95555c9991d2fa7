"""Costs according to AWS's price list."""

from __future__ import annotations

import pytest

from runvitals.relay.destinations.cloudwatch import prices
from runvitals.relay.destinations.cloudwatch.datum import MetricReading, MetricSeries
from runvitals.relay.destinations.cloudwatch.estimate import Estimate
from runvitals.relay.destinations.cloudwatch.metric_selection import NEURON_STANDARD, MetricGlobs
from runvitals.relay.destinations.cloudwatch.neuron_report import read
from tests.relay.destinations.cloudwatch.reports import inferentia, line, process, report


def estimate_of(document: dict[str, object], selection: MetricGlobs, **settings: object) -> Estimate:
    estimate = Estimate(**settings)  # type: ignore[arg-type]
    for reading in read(line(document)).readings:
        estimate.add(reading, selection.wants(reading))
    return estimate


def test_inf1_xlarge_costs_7_50_per_month() -> None:
    estimate = estimate_of(inferentia(), MetricGlobs(NEURON_STANDARD))
    assert len(estimate.sent) == 25
    assert estimate.metrics_usd() == 7.50


def test_four_cores_cost_1_20_per_month() -> None:
    only_cores = report(process([0.0] * 4))
    assert estimate_of(only_cores, MetricGlobs(NEURON_STANDARD)).metrics_usd() == 1.20
    assert estimate_of(inferentia(), MetricGlobs(["neuroncore_utilization"])).metrics_usd() == 1.20


def test_instances_are_billed_separately_with_a_distinguishing_dimension() -> None:
    selection = MetricGlobs(NEURON_STANDARD)
    assert estimate_of(inferentia(), selection, instances=10, per_instance=True).metrics_usd() == 75.0
    assert estimate_of(inferentia(), selection, instances=10).metrics_usd() == 7.5


def test_savings_of_an_excluded_group() -> None:
    estimate = estimate_of(inferentia(), MetricGlobs(NEURON_STANDARD, exclude=["execution_stats"]))
    rows = {name: (sent, usd, left_out, saved) for name, sent, usd, left_out, saved in estimate.groups()}
    assert rows["neuroncore_counters"] == (4, pytest.approx(1.20), 0, 0.0)
    assert rows["execution_stats"] == (0, 0.0, 26, pytest.approx(7.80))


@pytest.mark.parametrize(
    ("count", "usd"), [(0, 0.0), (10_000, 3000.0), (250_000, 27_000.0), (1_000_001, 64_500.02)]
)
def test_price_tiers(count: int, usd: float) -> None:
    assert prices.metrics_usd(count) == usd


@pytest.mark.parametrize(("seconds", "usd"), [(1, 25.92), (5, 5.184), (10, 2.592), (60, 0.432)])
def test_price_of_a_request_per_report(seconds: float, usd: float) -> None:
    assert prices.requests_usd(3600 / seconds) == usd


@pytest.mark.parametrize(
    ("metrics", "every_s", "resolution_s", "an_hour"),
    [
        (25, 60, 60, 60),
        (25, 5, 60, 60),
        (25, 300, 60, 12),
        (1001, 60, 60, 120),
        (25, 60, 1, 60),
        (100, 60, 1, 120),
    ],
)
def test_requests_per_hour_with_aggregation(
    metrics: int, every_s: float, resolution_s: int, an_hour: int
) -> None:
    estimate = Estimate(every_s=every_s, resolution_s=resolution_s, interval_s=5.0)
    for i in range(metrics):
        estimate.add(MetricReading(MetricSeries(f"m{i}"), 1.0, "group", f"m{i}"), True)
    assert estimate.requests_per_hour() == an_hour
    assert estimate.unbatched_requests_usd() == 5.184
