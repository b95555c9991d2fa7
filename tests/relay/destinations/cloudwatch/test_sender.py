from __future__ import annotations

import threading
from collections.abc import Sequence

from runvitals.base.backoff import Backoff
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries
from runvitals.relay.destinations.cloudwatch.sender import CloudWatchSender
from runvitals.relay.destinations.cloudwatch.split_request import RequestRejected, ServiceUnavailable
from tests.patience import PATIENCE_S


def datum(name: str, readings: int = 1) -> Datum:
    return Datum(MetricSeries(name), 60, (1.0,), (readings,))


def test_sends_requests_in_order() -> None:
    arrived: list[str] = []
    sender = CloudWatchSender(lambda request: arrived.extend(sent.series.name for sent in request))
    for i in range(50):
        sender.offer([datum(f"m{i}", 2)])
    assert sender.close(5.0)
    assert arrived == [f"m{i}" for i in range(50)]
    assert (sender.requests, sender.readings, sender.dropped) == (50, 100, 0)


def test_retries_a_throttled_request() -> None:
    calls: list[int] = []

    def put(request: Sequence[Datum]) -> None:
        calls.append(len(request))
        if len(calls) < 4:
            raise ServiceUnavailable("Throttling: Rate exceeded")

    backoff = Backoff(first_s=0.001, longest_s=0.001)
    sender = CloudWatchSender(put, backoff=backoff)
    sender.offer([datum("a")])
    assert sender.close(5.0)
    assert (calls, sender.dropped, sender.problem) == ([1] * 4, 0, "")
    assert backoff.failures == 0


def test_drops_the_oldest_while_the_network_hangs() -> None:
    hang, began = threading.Event(), threading.Event()

    def put(request: Sequence[Datum]) -> None:
        began.set()
        hang.wait(PATIENCE_S)

    sender = CloudWatchSender(put, waiting_data=10)
    sender.offer([datum("first", 5)])
    assert began.wait(PATIENCE_S)
    for i in range(100):
        sender.offer([datum(f"m{i}")])
    assert sender.dropped == 91  # 9 wait behind the one that is on its way
    assert not sender.close(0.0)
    assert sender.dropped == 100 + 5
    hang.set()


def test_drops_only_the_rejected_datum() -> None:
    arrived: list[str] = []

    def put(request: Sequence[Datum]) -> None:
        if any(sent.series.name == "bad" for sent in request):
            raise RequestRejected("InvalidParameterValue")
        arrived.extend(sent.series.name for sent in request)

    sender = CloudWatchSender(put)
    sender.offer([datum(name, 3) for name in ("a", "b", "bad", "c", "d")])
    assert sender.close(5.0)
    assert arrived == ["a", "b", "c", "d"]
    assert (sender.readings, sender.dropped, sender.problem) == (12, 0, "")
    assert sender.refusals.counts == {"bad: InvalidParameterValue": 3}


def test_retries_the_rest_of_a_rejected_request() -> None:
    arrived: list[str] = []
    calls: list[int] = []

    def put(request: Sequence[Datum]) -> None:
        calls.append(len(request))
        if len(calls) % 2:
            raise ServiceUnavailable("Throttling")
        if any(sent.series.name == "bad" for sent in request):
            raise RequestRejected("InvalidParameterValue")
        arrived.extend(sent.series.name for sent in request)

    sender = CloudWatchSender(put, backoff=Backoff(first_s=0.001, longest_s=0.001))
    sender.offer([datum(name) for name in ("a", "bad", "b", "c")])
    assert sender.close(PATIENCE_S)
    assert arrived == ["a", "b", "c"]
    assert sender.refusals.readings == 1
