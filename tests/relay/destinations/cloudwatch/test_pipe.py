"""Reports in at one end of a pipe, data out at the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence

import pytest

from runvitals.relay.destinations.cloudwatch.client import CloudWatchClient
from runvitals.relay.destinations.cloudwatch.datum import Datum
from runvitals.relay.destinations.cloudwatch.metric_selection import NEURON_STANDARD, MetricSelection
from runvitals.relay.destinations.cloudwatch.pipe import Pipe, PutMetricDataSink
from tests.relay.destinations.cloudwatch.conftest import FakeCloud
from tests.relay.destinations.cloudwatch.reports import inferentia, line, process, report

START_S = 1_800_000_000.0  # a whole minute


class Kept:
    """A sink that keeps."""

    def __init__(self) -> None:
        self.offers: list[list[Datum]] = []

    def offer(self, data: Sequence[Datum]) -> None:
        self.offers.append(list(data))

    def close(self) -> bool:
        return True

    def report(self) -> str:
        return f"{sum(map(len, self.offers))} data kept"

    def trouble(self) -> list[str]:
        return []


class Clock:
    """Goes on by so much at each look."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s = START_S
        self.step_s = step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def written(text: bytes) -> int:
    """A pipe that somebody writes this to, and closes."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(text)

    threading.Thread(target=write).start()
    return reading


def piped(
    text: bytes, globs: Iterable[str] = (), dimensions: Sequence[str] = (), clock: Clock | None = None
) -> tuple[list[Datum], str]:
    """The data of a text, and the last line for people."""
    from runvitals.relay.destinations.cloudwatch.dimensions import parse

    kept, said = Kept(), list[str]()
    fd = written(text)
    pipe = Pipe(
        fd, MetricSelection(list(globs)), parse(dimensions), kept, say=said.append, clock=clock or Clock()
    )
    assert pipe.run()
    os.close(fd)
    return [datum for offer in kept.offers for datum in offer], said[-1]


def test_reports_of_a_minute_are_one_datum_a_metric() -> None:
    data, said = piped(line(report(process([50.0]))) * 3 + line(report(process([80.0]))))
    assert [(one.series.name, one.time_s, one.values, one.counts) for one in data] == [
        ("NeuronCoreUtilizationNC0", START_S, (50.0, 80.0), (3, 1))
    ]
    assert said == "runvitals: 4 reports, 1 data kept"


def test_only_what_is_wanted_is_sent() -> None:
    assert len(piped(line(inferentia()), NEURON_STANDARD)[0]) == 25
    assert len(piped(line(inferentia()), ["neuroncore_counters"])[0]) == 4


def test_lines_that_are_no_reports_are_skipped_and_counted() -> None:
    good = line(report(process([50.0])))
    text = b"panic: oh\n" + good + good[:60] + b"\n[1,2]\n\xff\xfe\n{}\n" + good[:-1]
    data, said = piped(text)
    assert data[0].counts == (2,)
    assert said == "runvitals: 2 reports, 1 data kept; 5 lines skipped: not a report"


def test_the_instance_is_a_dimension_where_it_is_asked_for() -> None:
    data, _ = piped(line(report(process([1.0]))), dimensions=["InstanceId", "Team=a", "RuntimeTag"])
    assert data[0].series.dimensions == (("InstanceId", "i-0feed"), ("Team", "a"), ("RuntimeTag", "train"))


def test_a_dimension_that_cannot_be_had_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ECS_CONTAINER_METADATA_URI_V4", raising=False)
    fd = written(line(report(process([1.0]))))
    kept = Kept()
    with pytest.raises(LookupError, match="TaskId: this is no task of ECS"):
        Pipe(fd, MetricSelection(), {"TaskId": None}, kept, say=print).run()
    os.close(fd)
    assert kept.offers == []


def test_numbers_that_cannot_be_sent_are_counted() -> None:
    huge = line(report(process([1.0]))).replace(b"1.0}", b"1e200}")
    data, said = piped(huge)
    assert data == []
    assert "1 readings that are no finite numbers" in said


def test_a_report_of_450_kilobytes_is_read_like_any_other() -> None:
    busy = [process([0.0] * i + [100.0] + [0.0] * (31 - i), pid=i) for i in range(32)]
    for one in busy:
        one["report"]["memory_used"] = {"loaded_models": [{"name": "x" * 700}] * 20}
    text = line(report(*busy))
    assert len(text) > 450_000
    data, _ = piped(text, NEURON_STANDARD)
    assert [one.values for one in data] == [(100.0,)] * 32


def test_everything_arrives_at_cloudwatch(cloud: FakeCloud) -> None:
    client = CloudWatchClient("Neuron", "us-west-2")
    fd = written(line(inferentia()) * 12)
    said: list[str] = []
    assert Pipe(fd, MetricSelection(NEURON_STANDARD), {}, PutMetricDataSink(client), say=said.append).run()
    os.close(fd)
    client.close()
    assert len(cloud.names("Neuron")) == 25
    assert "NeuronCoreUtilizationNC3" in cloud.names("Neuron")
    assert said[-1].startswith("runvitals: 12 reports, 300 readings delivered in 1 requests")


def test_what_did_not_arrive_is_said_and_is_a_failure(
    cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("runvitals.relay.destinations.cloudwatch.pipe.LAST_WAIT_S", 0.2)
    client = CloudWatchClient("Neuron", "us-west-2")
    fd = written(line(report(process([1.0, 2.0]))))
    said: list[str] = []
    assert not Pipe(fd, MetricSelection(), {}, PutMetricDataSink(client), say=said.append).run()
    os.close(fd)
    assert "2 readings dropped; Could not connect" in said[-1]


def test_a_minute_that_has_ended_is_sent_while_reports_go_on() -> None:
    """The clock goes on by a second a look, so that the reports are spread over minutes."""
    kept = Kept()
    fd = written(line(report(process([50.0]))) * 400)
    pipe = Pipe(fd, MetricSelection(), {}, kept, say=lambda text: None, clock=Clock(step_s=1.0))
    pipe.run()
    os.close(fd)
    assert sum(datum.readings for offer in kept.offers for datum in offer) == 400
    assert len({datum.time_s for offer in kept.offers for datum in offer}) >= 6
