"""Which parts of a refused request are sent, and how many requests that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries
from runvitals.relay.destinations.cloudwatch.split_request import (
    RefusedReadings,
    RequestRejected,
    ServiceUnavailable,
    SplitRequest,
)

Test = Callable[[Datum, float], bool]


class Service:
    """Refuses each request that has a value which `refuses`."""

    def __init__(self, refuses: Test) -> None:
        self._refuses = refuses
        self.requests = 0
        self.arrived: list[float] = []

    def put(self, request: Sequence[Datum]) -> None:
        self.requests += 1
        if any(self._refuses(datum, value) for datum in request for value in datum.values):
            raise RequestRejected("InvalidParameterValue")
        self.arrived += [value for datum in request for value in datum.values]


def datum(name: str, first: int, count: int = 150) -> Datum:
    """A datum of distinct values, each of which occurred twice."""
    values = tuple(float(value) for value in range(first, first + count))
    return Datum(MetricSeries(name), 60, values, (2,) * count)


def send(data: Sequence[Datum], service: Service) -> dict[str, int]:
    """Send a request; what was refused."""
    refusals = RefusedReadings({})
    request = SplitRequest(data, service.put, refusals)
    sent = 0
    while request:
        sent += request.send_part()
    assert sent == 2 * len(service.arrived)
    return refusals.counts


@pytest.mark.parametrize("bad", [{0.0}, {149.0}, {70.0, 71.0, 149.0}, {400.0}, {0.0, 299.0}])
def test_only_refused_values_are_lost(bad: set[float]) -> None:
    service = Service(lambda datum, value: value in bad)
    data = [datum("cpu", 0), datum("cpu", 150), datum("memory", 300)]
    counts = send(data, service)
    assert sum(counts.values()) == 2 * len(bad)
    assert sorted(service.arrived) == [float(value) for value in range(450) if value not in bad]


def test_a_datum_of_which_everything_is_refused_takes_few_requests() -> None:
    service = Service(lambda datum, value: datum.series.name == "cpu")
    counts = send([datum("cpu", 0), datum("cpu", 150), datum("memory", 300)], service)
    assert counts == {"cpu: InvalidParameterValue": 600}
    assert len(service.arrived) == 150
    assert service.requests < 20


def test_nothing_is_sent_twice_after_an_interruption() -> None:
    service = Service(lambda datum, value: value == 7.0)
    calls = []

    def put(request: Sequence[Datum]) -> None:
        calls.append(request)
        if len(calls) % 3:
            raise ServiceUnavailable("Throttling")
        service.put(request)

    request = SplitRequest([datum("cpu", 0)], put, RefusedReadings({}))
    while request:
        try:
            request.send_part()
        except ServiceUnavailable:
            assert request.readings
    assert sorted(service.arrived) == [float(value) for value in range(150) if value != 7]


def test_the_number_of_reasons_is_limited() -> None:
    refusals = RefusedReadings({})
    for number in range(100):
        refusals.add(f"reason {number}", 1)
    assert len(refusals.texts()) == 21
    assert refusals.readings == 100
