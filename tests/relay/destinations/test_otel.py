"""OTLP over HTTP, read by OpenTelemetry's own classes behind a real server."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.metric import placeholders
from runvitals.relay.destination import Retry
from runvitals.relay.destinations.otel.destination import endpoint
from runvitals.relay.destinations.otel.naming import name_metric
from tests.relay.journals import Journal, Sender
from tests.relay.real_servers import VictoriaMetrics
from tests.relay.recording_server import RecordingServer, Request


@pytest.fixture(params=["protobuf", "json"])
def sender(request: pytest.FixtureRequest, journal: Journal, target: RecordingServer) -> Iterator[Sender]:
    sender = Sender(journal.folder, f"otel:{target.url}#encoding={request.param}")
    yield sender
    sender.kill()


def read(request: Request) -> ExportMetricsServiceRequest:
    packed = request.headers.get("content-encoding") == "gzip"
    body = gzip.decompress(request.body) if packed else request.body
    if request.headers["content-type"] == "application/json":
        return json_format.Parse(body, ExportMetricsServiceRequest())
    assert request.headers["content-type"] == "application/x-protobuf"
    return ExportMetricsServiceRequest.FromString(body)


def found(requests: list[Request]) -> dict[str, Any]:
    """The metrics of all requests, by name."""
    return {
        metric.name: metric
        for request in requests
        for resource in read(request).resource_metrics
        for metric in resource.scope_metrics[0].metrics
    }


def attributes(message: Any) -> dict[str, Any]:
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in message.attributes
    }


def test_samples_of_a_run(journal: Journal, target: RecordingServer, sender: Sender) -> None:
    for second in range(2):
        journal.sample(
            second, **{"cpu": 10.0 + second, "network.eth0.sent": 5.0 * second, "memory.usedMB": 3.0}
        )
    journal.log(3, 7, loss=0.5)
    sender.send()
    assert {request.path for request in target.requests} == {"/v1/metrics"}
    metrics = found(target.requests)
    points = metrics["process.cpu.utilization"].gauge.data_points
    ns = journal.t0 * 1_000_000
    assert [(point.time_unix_nano, point.as_double) for point in points] == [(ns, 0.1), (ns + 10**9, 0.11)]
    sent = metrics["system.network.io"]
    assert sent.unit == "By"
    assert sent.sum.is_monotonic
    assert sent.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert [data_point.as_double for data_point in sent.sum.data_points] == [0.0, 5.0]
    assert sent.sum.data_points[0].start_time_unix_nano > 0
    assert attributes(sent.sum.data_points[0]) == {
        "network.io.direction": "transmit",
        "network.interface.name": "eth0",
    }
    used = metrics["system.memory.usage"]
    assert not used.sum.is_monotonic
    assert used.sum.data_points[0].as_double == 3 * 2**20
    assert used.sum.data_points[0].start_time_unix_nano == 0
    (loss,) = metrics["runvitals.log"].gauge.data_points
    assert (loss.as_double, attributes(loss)) == (0.5, {"runvitals.key": "loss"})


def test_resource_attributes(
    journal: Journal, target: RecordingServer, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.sample(0, cpu=1.0)
    sender.send()
    (monitor,) = read(target.requests[0]).resource_metrics
    assert attributes(monitor.resource) == {
        "service.name": "digits",
        "service.instance.id": "abc/node1",
        "host.name": "node1",
        "runvitals.run.id": "abc",
        "runvitals.run.name": "abc",
        "runvitals.project": "digits",
    }
    assert monitor.scope_metrics[0].scope.name == "runvitals"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "vision")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=a%20b,team=x")
    journal.log(1, 0, loss=1.0)
    sender.send()
    (train,) = read(target.requests[1]).resource_metrics
    values = attributes(train.resource)
    assert (
        values["service.name"],
        values["deployment.environment"],
        values["team"],
    ) == ("vision", "a b", "x")
    assert (values["runvitals.rank"], values["process.pid"]) == (0, 7)


def test_gaps_and_the_end_are_marked(journal: Journal, target: RecordingServer, sender: Sender) -> None:
    for second, value in enumerate([1.0, float("nan")]):
        journal.sample(second, cpu=value)
    journal.log(1, 0, loss=float("nan"), gain=float("inf"))
    journal.end()
    sender.send()
    metrics = found(target.requests)
    flags = [data_point.flags for data_point in metrics["process.cpu.utilization"].gauge.data_points]
    assert flags == [0, 1]
    values = {
        data_point.attributes[0].value.string_value: data_point
        for data_point in metrics["runvitals.log"].gauge.data_points
    }
    assert isnan(values["loss"].as_double)
    assert values["gain"].as_double == float("inf")
    assert values["loss"].flags == 0


def test_partial_success_is_counted_as_rejected(
    journal: Journal, target: RecordingServer, sender: Sender
) -> None:
    response = ExportMetricsServiceResponse(
        partial_success=ExportMetricsPartialSuccess(rejected_data_points=3, error_message="too old")
    )
    as_json = sender.cursor.spec.text.endswith("json")
    body = json_format.MessageToJson(response).encode() if as_json else response.SerializeToString()
    target.responses.append((200, {}, body))
    journal.sample(0, cpu=1.0)
    sender.send()
    assert sender.cursor.rejection == "3 points were rejected: too old"


def test_retries_after_503(journal: Journal, target: RecordingServer, sender: Sender) -> None:
    target.responses.append((503, {"Retry-After": "3"}, b""))
    journal.sample(0, cpu=1.0)
    with pytest.raises(Retry) as raised:
        sender.send()
    assert raised.value.after_s == 3.0
    sender.send()
    assert target.requests[0].body == target.requests[1].body


def test_configuration_from_the_environment(
    journal: Journal, target: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{target.url}/team/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    sender = Sender(journal.folder, "otel")
    journal.sample(0, cpu=1.0)
    sender.send()
    sender.kill()
    (request,) = target.requests
    assert request.path == "/team/v1/metrics"
    assert request.headers["api-key"] == "s3cret"
    assert request.body.startswith(b"{")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "http://localhost:4318/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a/"}, "https://a/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://a/b"}, "https://a/b"),
    ],
)
def test_endpoints(environ: dict[str, str], expected: str) -> None:
    assert endpoint(environ) == expected


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "unsupported encoding 'grpc'"),
        ({"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "unsupported compression 'zstd'"),
    ],
)
def test_unsupported_protocols_raise(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], text: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    sender = Sender(journal.folder, "otel")
    with pytest.raises(ValueError, match=text):
        sender.send()
    sender.kill()


def test_metric_names_are_distinct_and_of_one_kind() -> None:
    seen: dict[Any, str] = {}
    families: dict[str, set[Any]] = defaultdict(set)
    for row in DEFINITIONS.metrics:
        if not row.name:
            continue
        key = row.key.format(**dict.fromkeys(placeholders(row.key), "7"))
        family, labels, _ = name_metric(key)
        assert (family.name, labels) not in seen, (row.key, seen[family.name, labels])
        seen[family.name, labels] = row.key
        families[family.name].add((family.kind, family.unit))
    assert {name: kinds for name, kinds in families.items() if len(kinds) > 1} == {}


def test_victoriametrics_accepts_it(journal: Journal, tmp_path: Path) -> None:
    journal.sample(0, cpu=50.0)
    with VictoriaMetrics(tmp_path / "victoria") as victoria:
        sender = Sender(journal.folder, f"otel:{victoria.url}/opentelemetry/v1/metrics")
        sender.send()
        sender.kill()
        if "unsupported path" in sender.cursor.rejection:
            pytest.skip("this machine's VictoriaMetrics is too old for OTLP")
        (stored,) = victoria.exported('{__name__=~".*cpu.utilization"}')
        assert stored["values"] == [0.5]
