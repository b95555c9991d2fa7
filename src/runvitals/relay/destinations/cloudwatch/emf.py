"""The embedded metric format: lines of JSON that CloudWatch Logs makes metrics of.

Whoever reads them (the CloudWatch agent, Fluent Bit, a Lambda's or an ECS task's log) sends them on; there is
no PutMetricData request to pay, but the log's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runvitals.relay.destinations.cloudwatch.datum import Datum, Dimensions

METRICS_PER_DIRECTIVE = 100
VALUES_PER_METRIC = 100
BYTES_PER_EVENT = 256 * 1024  # 1 MB today; agents and older parts of the way cut at this


def lines(namespace: str, data: Iterable[Datum]) -> Iterator[str]:
    """One line of JSON for at most 100 metrics of one time and set of dimensions.

    Counts are written out: a value that came three times is three times in its array.

    Example:
        >>> next(lines("Neuron", [Datum(Series("cpu", "Percent"), 60, (50.0,), (2,))]))
        '{"_aws":{"Timestamp":60000,"CloudWatchMetrics":[{"Namespace":"Neuron",…}]},"cpu":[50.0,50.0]}'
    """
    groups: dict[tuple[int, Dimensions, int], list[tuple[Datum, list[float]]]] = {}
    for datum in data:
        for part, values in enumerate(_arrays(datum)):
            # Two arrays of one metric cannot be in one line: the second goes to another.
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
        # One name cannot be in a line twice (with another unit, or in two data of the same time).
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
    found: dict[str, Any] = {"_aws": {"Timestamp": time_s * 1000, "CloudWatchMetrics": [directive]}}
    for datum, values in event:
        found[datum.series.name] = values if len(values) > 1 else values[0]
    found.update(dimensions)
    return json.dumps(found, separators=(",", ":"))
