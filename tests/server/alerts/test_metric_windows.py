"""When values of a metric begin to meet a condition."""

from __future__ import annotations

import pytest

from runvitals.server.alerts.automations import MetricChange, MetricEvent, MetricThreshold, MetricZScore
from runvitals.server.alerts.metric_windows import MetricWindows

STEADY = [1.0, 2.0] * 15


@pytest.mark.parametrize(
    ("event", "values", "found"),
    [
        (MetricThreshold("loss", 10.0), [1.0, 10.0, 11.0, 12.0], 11.0),
        (MetricThreshold("loss", 10.0), [1.0, 10.0], None),
        (MetricThreshold("loss", 1.0, "<="), [2.0, 1.0], 1.0),
        (MetricThreshold("loss", 1.0, "!="), [1.0, float("inf")], float("inf")),
        (MetricThreshold("loss", 2.0, ">", "mean", 2), [9.0], None),
        (MetricThreshold("loss", 2.0, ">", "mean", 2), [1.0, 2.0, 3.0], 2.5),
        (MetricThreshold("loss", 2.0, ">", "min", 2), [3.0, 1.0, 3.0, 4.0], 3.0),
        (MetricThreshold("loss", 2.0, "<", "max", 2), [3.0, 1.0, 1.5], 1.5),
        (MetricChange("loss", 0.5, window=2, before=2), [2.0, 2.0, 2.0, 3.0], None),
        (MetricChange("loss", 0.5, window=2, before=2), [2.0, 2.0, 3.0, 3.0], 3.0),
        (MetricChange("loss", 0.5, direction="down", window=2, before=2), [2.0, 2.0, 3.0, 3.0], None),
        (MetricChange("loss", 0.5, window=2, before=2), [0.0, 0.0, 3.0, 3.0], None),
        (MetricChange("loss", 2.0, False, "up", 1, 1), [0.0, 2.0], 2.0),
        (MetricZScore("loss"), [*STEADY, 2.9], None),
        (MetricZScore("loss"), [*STEADY, 3.1], 3.1),
        (MetricZScore("loss", direction="up"), [*STEADY, -9.0], None),
        (MetricZScore("loss"), [1.0] * 40, None),
        (MetricZScore("loss"), [1.0, 9.0], None),
    ],
)
def test_conditions(event: MetricEvent, values: list[float], found: float | None) -> None:
    together, one_by_one = MetricWindows(), MetricWindows()
    assert together.add(1, "run:1", event, values) == found
    answers = [one_by_one.add(1, "run:1", event, [value]) for value in values]
    assert next((answer for answer in answers if answer is not None), None) == found


def test_a_condition_that_stays_met_is_reported_once_for_each_run() -> None:
    windows, event = MetricWindows(), MetricThreshold("loss", 10.0)
    assert windows.add(1, "run:1", event, [11.0]) == 11.0
    assert windows.add(1, "run:1", event, [12.0]) is None
    assert windows.add(1, "run:2", event, [12.0]) == 12.0
    assert windows.add(2, "run:1", event, [12.0]) == 12.0
    assert windows.add(1, "run:1", event, [1.0, 13.0]) == 13.0
