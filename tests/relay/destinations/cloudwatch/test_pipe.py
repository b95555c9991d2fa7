"""From reports written to a pipe to data sent to CloudWatch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence

import pytest

from runvitals.relay.destinations.cloudwatch.client import CloudWatchClient
from runvitals.relay.destinations.cloudwatch.datum import Datum
from runvitals.relay.destinations.cloudwatch.metric_selection import NEURON_STANDARD, MetricGlobs
from runvitals.relay.destinations.cloudwatch.pipe import Pipe, PutMetricDataSink
from tests.relay.destinations.cloudwatch.conftest import FakeCloud
from tests.relay.destinations.cloudwatch.reports import inferentia, line, process, report

START_S = 1_800_000_000.0  # a whole minute


class ListSink:
    """Keeps the data it is offered."""

    def __init__(self) -> None:
        self.offers: list[list[Datum]] = []

    def offer(self, data: Sequence[Datum]) -> None:
        self.offers.append(list(data))

    def close(self) -> bool:
        return True

    def report(self) -> str:
        return f"{sum(map(len, self.offers))} data kept"

    def problems(self) -> list[str]:
        return []


class Clock:
    """Advances by `step_s` at each call."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s = START_S
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def pipe_with(text: bytes) -> int:
    """The reading end of a pipe that a thread writes `text` to and closes."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(text)

    threading.Thread(target=write).start()
    return reading


def run_pipe(
    text: bytes, globs: Iterable[str] = (), dimensions: Sequence[str] = (), clock: Clock | None = None
) -> tuple[list[Datum], str]:
    """Run a `Pipe` over a text; returns the data and the last line for the user."""
    from runvitals.relay.destinations.cloudwatch.dimensions import parse

    sink, shown = ListSink(), list[str]()
    fd = pipe_with(text)
    pipe = Pipe(
        fd, MetricGlobs(list(globs)), parse(dimensions), sink, show=shown.append, clock=clock or Clock()
    )
    assert pipe.run()
    os.close(fd)
    return [datum for offer in sink.offers for datum in offer], shown[-1]


def test_aggregates_reports_of_a_minute() -> None:
    data, shown = run_pipe(line(report(process([50.0]))) * 3 + line(report(process([80.0]))))
    assert [(datum.series.name, datum.time_s, datum.values, datum.counts) for datum in data] == [
        ("NeuronCoreUtilizationNC0", START_S, (50.0, 80.0), (3, 1))
    ]
    assert shown == "runvitals: 4 reports, 1 data kept"


def test_sends_only_selected_metrics() -> None:
    assert len(run_pipe(line(inferentia()), NEURON_STANDARD)[0]) == 25
    assert len(run_pipe(line(inferentia()), ["neuroncore_counters"])[0]) == 4


def test_skips_and_counts_lines_that_are_not_reports() -> None:
    good = line(report(process([50.0])))
    text = b"panic: oh\n" + good + good[:60] + b"\n[1,2]\n\xff\xfe\n{}\n" + good[:-1]
    data, shown = run_pipe(text)
    assert data[0].counts == (2,)
    assert shown == "runvitals: 2 reports, 1 data kept; 5 lines skipped: not a report"


def test_instance_as_dimension() -> None:
    data, _ = run_pipe(line(report(process([1.0]))), dimensions=["InstanceId", "Team=a", "RuntimeTag"])
    assert data[0].series.dimensions == (("InstanceId", "i-0feed"), ("Team", "a"), ("RuntimeTag", "train"))


def test_unavailable_dimension_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ECS_CONTAINER_METADATA_URI_V4", raising=False)
    fd = pipe_with(line(report(process([1.0]))))
    sink = ListSink()
    with pytest.raises(LookupError, match="TaskId: not an ECS task"):
        Pipe(fd, MetricGlobs(), {"TaskId": None}, sink, show=print).run()
    os.close(fd)
    assert sink.offers == []


def test_counts_values_that_cannot_be_sent() -> None:
    huge = line(report(process([1.0]))).replace(b"1.0}", b"1e200}")
    data, shown = run_pipe(huge)
    assert data == []
    assert "1 readings that are not finite" in shown


def test_reads_a_report_of_450_kilobytes() -> None:
    busy = [process([0.0] * i + [100.0] + [0.0] * (31 - i), pid=i) for i in range(32)]
    for busy_process in busy:
        busy_process["report"]["memory_used"] = {"loaded_models": [{"name": "x" * 700}] * 20}
    text = line(report(*busy))
    assert len(text) > 450_000
    data, _ = run_pipe(text, NEURON_STANDARD)
    assert [datum.values for datum in data] == [(100.0,)] * 32


def test_delivers_to_cloudwatch(cloud: FakeCloud) -> None:
    client = CloudWatchClient("Neuron", "us-west-2")
    fd = pipe_with(line(inferentia()) * 12)
    shown: list[str] = []
    assert Pipe(fd, MetricGlobs(NEURON_STANDARD), {}, PutMetricDataSink(client), show=shown.append).run()
    os.close(fd)
    client.close()
    assert len(cloud.names("Neuron")) == 25
    assert "NeuronCoreUtilizationNC3" in cloud.names("Neuron")
    assert shown[-1].startswith("runvitals: 12 reports, 300 readings delivered in 1 requests")


def test_undelivered_readings_are_reported_and_fail(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("runvitals.relay.destinations.cloudwatch.pipe.LAST_WAIT_S", 0.2)
    client = CloudWatchClient("Neuron", "us-west-2")
    fd = pipe_with(line(report(process([1.0, 2.0]))))
    shown: list[str] = []
    assert not Pipe(fd, MetricGlobs(), {}, PutMetricDataSink(client), show=shown.append).run()
    os.close(fd)
    assert "2 readings dropped; Could not connect" in shown[-1]


def test_sends_a_finished_minute_while_reading() -> None:
    """The clock advances by a second at each call, so that the reports are spread over minutes."""
    sink = ListSink()
    fd = pipe_with(line(report(process([50.0]))) * 400)
    pipe = Pipe(fd, MetricGlobs(), {}, sink, show=lambda text: None, clock=Clock(step_s=1.0))
    pipe.run()
    os.close(fd)
    assert sum(datum.readings for offer in sink.offers for datum in offer) == 400
    assert len({datum.time_s for offer in sink.offers for datum in offer}) >= 6
