from __future__ import annotations

import json
from typing import Any

from runvitals.relay.destinations.cloudwatch import emf
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries

HOST = (("Host", "n1"),)


def events(data: list[Datum]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in emf.lines("Neuron", data)]


def test_line_has_the_format_of_cloudwatch_logs() -> None:
    data = [
        Datum(MetricSeries("cpu", "Percent", HOST), 60, (50.0, 75.0), (2, 1)),
        Datum(MetricSeries("gpu", "Percent", HOST), 60, (9.0,), (1,)),
    ]
    metrics = [{"Name": name, "Unit": "Percent", "StorageResolution": 60} for name in ("cpu", "gpu")]
    assert events(data) == [
        {
            "_aws": {
                "Timestamp": 60_000,
                "CloudWatchMetrics": [{"Namespace": "Neuron", "Dimensions": [["Host"]], "Metrics": metrics}],
            },
            "cpu": [50.0, 50.0, 75.0],
            "gpu": 9.0,
            "Host": "n1",
        }
    ]


def test_splits_at_100_metrics_and_100_values() -> None:
    documents = events([Datum(MetricSeries(f"m{i}"), 60, (1.0,), (1,)) for i in range(250)])
    assert [len(event["_aws"]["CloudWatchMetrics"][0]["Metrics"]) for event in documents] == [100, 100, 50]
    documents = events([Datum(MetricSeries("m"), 60, (1.0, 2.0), (150, 51))])
    assert [event["m"] for event in documents] == [[1.0] * 100, [1.0] * 50 + [2.0] * 50, 2.0]


def test_separate_lines_for_times_and_dimensions() -> None:
    data = [
        Datum(MetricSeries("m", dimensions=HOST), 60, (1.0,), (1,)),
        Datum(MetricSeries("m", dimensions=HOST), 120, (1.0,), (1,)),
        Datum(MetricSeries("m"), 60, (1.0,), (1,)),
    ]
    assert len(events(data)) == 3


def test_lines_stay_below_the_event_limit() -> None:
    dimensions = tuple((f"dimension{i}", "x" * 1024) for i in range(30))
    values = tuple(i / 3 for i in range(100))
    data = [
        Datum(MetricSeries("n" * 250 + str(i), "Percent", dimensions), 60, values, (1,) * 100)
        for i in range(300)
    ]
    lines = list(emf.lines("N" * 255, data))
    assert max(map(len, lines)) <= emf.BYTES_PER_EVENT
    assert sum(len(json.loads(line)["_aws"]["CloudWatchMetrics"][0]["Metrics"]) for line in lines) == 300
