"""The embedded metric format (EMF): lines of JSON from which CloudWatch Logs extracts metrics.

The lines are collected by the CloudWatch agent, Fluent Bit, or the log of a Lambda function or ECS task.
There are no PutMetricData requests to pay for, but the bytes of the log. See
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runvitals.relay.destinations.cloudwatch.datum import Datum, Dimensions

METRICS_PER_DIRECTIVE = 100
VALUES_PER_METRIC = 100
BYTES_PER_EVENT = 256 * 1024  # now 1 MB, but agents still truncate at this size


def lines(namespace: str, data: Iterable[Datum]) -> Iterator[str]:
    """Encode data as lines of JSON, each with at most 100 metrics of the same time and dimensions.

    The format has no counts: a value that occurred three times is repeated three times.

    Example:
        >>> next(lines("Neuron", [Datum(MetricSeries("cpu", "Percent"), 60, (50.0,), (2,))]))
        '{"_aws":{"Timestamp":60000,"CloudWatchMetrics":[{"Namespace":"Neuron",…}]},"cpu":[50.0,50.0]}'
    """
    groups: dict[tuple[int, Dimensions, int], list[tuple[Datum, list[float]]]] = {}
    for datum in data:
        for part, values in enumerate(_arrays(datum)):
            # A line can have only one array per metric.
            groups.setdefault((datum.time_s, datum.series.dimensions, part), []).append((datum, values))
    for (time_s, dimensions, _), members in groups.items():
        for event in _events(members):
            yield _line(namespace, time_s, dimensions, event)


def _arrays(datum: Datum) -> Iterator[list[float]]:
    pairs = zip(datum.values, datum.counts, strict=True)
    values = [value for value, count in pairs for _ in range(count)]
    for start in range(0, len(values), VALUES_PER_METRIC):
        yield values[start : start + VALUES_PER_METRIC]


def _events(members: Sequence[tuple[Datum, list[float]]]) -> Iterator[Sequence[tuple[Datum, list[float]]]]:
    event: dict[str, tuple[Datum, list[float]]] = {}
    room = BYTES_PER_EVENT - 1024 - 2 * len(json.dumps(members[0][0].series.dimensions))
    used = 0
    for datum, values in members:
        cost = 100 + 4 * len(datum.series.name) + 26 * len(values)
        # A name can occur only once in a line (it may recur with another unit, or in a datum of the same
        # time).
        if event and (
            len(event) == METRICS_PER_DIRECTIVE or used + cost > room or datum.series.name in event
        ):
            yield list(event.values())
            event, used = {}, 0
        event[datum.series.name] = (datum, values)
        used += cost
    if event:
        yield list(event.values())


def _line(
    namespace: str, time_s: int, dimensions: Dimensions, event: Sequence[tuple[Datum, list[float]]]
) -> str:
    metrics = [
        {"Name": datum.series.name, "Unit": datum.series.unit, "StorageResolution": datum.resolution_s}
        for datum, _ in event
    ]
    directive = {
        "Namespace": namespace,
        "Dimensions": [[name for name, _ in dimensions]],
        "Metrics": metrics,
    }
    document: dict[str, Any] = {"_aws": {"Timestamp": time_s * 1000, "CloudWatchMetrics": [directive]}}
    for datum, values in event:
        document[datum.series.name] = values if len(values) > 1 else values[0]
    document.update(dimensions)
    return json.dumps(document, separators=(",", ":"))
