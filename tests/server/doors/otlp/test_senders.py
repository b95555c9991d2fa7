"""Real senders: OpenTelemetry's SDK by HTTP and gRPC, and our own destination, whose keys come back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from runvitals.server.doors.otlp.grpc_server import OtlpGrpcServer
from tests.relay.journals import Journal, Sender
from tests.server.doors.otlp.conftest import Receiving


@pytest.fixture(scope="module")
def grpc_server(receiving: Receiving) -> Iterator[OtlpGrpcServer]:
    with OtlpGrpcServer("127.0.0.1:0", receiving.served.address) as server:
        yield server


@pytest.mark.parametrize("protocol", ["http", "http-gzip", "grpc"])
def test_the_sdk(receiving: Receiving, grpc_server: OtlpGrpcServer, protocol: str) -> None:
    exporter: MetricExporter
    if protocol == "grpc":
        exporter = GrpcExporter(f"http://127.0.0.1:{grpc_server.port}", insecure=True)
    else:
        compression = Compression.Gzip if protocol == "http-gzip" else Compression.NoCompression
        exporter = HttpExporter(f"{receiving.url}/v1/metrics", compression=compression)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)
    resource = Resource({"service.name": "train", "service.instance.id": protocol, "host.name": "node1"})
    provider = MeterProvider([reader], resource)
    meter = provider.get_meter("test")
    tokens = meter.create_counter("tokens", "{token}")
    tokens.add(5, {"split": "train"})
    meter.create_histogram("step.duration", "s").record(0.02)
    meter.create_up_down_counter("workers").add(3)

    def used(options: CallbackOptions) -> list[Observation]:
        return [Observation(7 * 2**20, {"system.memory.state": "used"})]

    meter.create_observable_gauge("system.memory.usage", [used], "By")
    assert provider.force_flush()
    tokens.add(2, {"split": "train"})
    assert provider.force_flush()
    provider.shutdown()
    run = f"train-{protocol}"
    keys = receiving.keys(run)
    assert {
        'tokens{split="train"}',
        "step.duration.mean",
        "step.duration.p99",
        "workers",
        "memory.usedMB",
    } <= keys
    assert list(receiving.values(run, 'tokens{split="train"}').values()) == [5.0, 7.0]
    assert list(receiving.values(run, "memory.usedMB").values()) == [7.0, 7.0]


def test_grpc_refuses_other_signals_and_invalid_messages(
    receiving: Receiving, grpc_server: OtlpGrpcServer
) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{grpc_server.port}") as channel:
        with pytest.raises(grpc.RpcError) as raised:
            TraceServiceStub(channel).Export(ExportTraceServiceRequest())
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert raised.value.details() == "traces are not stored: send metrics only"
        export = channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
        with pytest.raises(grpc.RpcError) as raised:
            export(b"\xff\xff")
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "invalid ExportMetricsServiceRequest" in raised.value.details()


def test_grpc_says_when_to_retry() -> None:
    with (
        OtlpGrpcServer("127.0.0.1:0", ("127.0.0.1", 1)) as server,  # where nothing listens
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        export = channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
        with pytest.raises(grpc.RpcError) as raised:
            export(b"")
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    details = dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
    assert b"google.rpc.RetryInfo" in details


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_keys_of_our_own_destination_come_back(receiving: Receiving, tmp_path: Path, encoding: str) -> None:
    journal = Journal(tmp_path)
    sampled = {
        "cpu": 12.5,
        "memory.usedMB": 3.0,
        "network.eth0.sent": 5.0,
        "gpu.1.powerWatts": 300.0,
        "gpu.1.memoryAllocated": 40.0,
        "disk./data.usagePercent": 12.0,
        "my.own": 7.0,
    }
    for second in range(2):
        journal.sample(second, **sampled)
    journal.log(2, 7, loss=0.5)
    sender = Sender(journal.folder, f"otel:{receiving.url}#encoding={encoding}")
    sender.send()
    sender.kill()
    run = receiving.get("runs/abc")
    assert (run["project"], run["config"].get("resource", {}).get("service.name")) == ("digits", "digits")
    assert receiving.keys("abc") >= set(sampled)
    for key, value in sampled.items():
        stored = receiving.values("abc", key)
        assert {
            journal.t0: pytest.approx(value),
            journal.t0 + 1000: pytest.approx(value),
        }.items() <= stored.items()
    (rows,) = receiving.get("runs/abc/history", keys="loss")["groups"]
    assert (rows["rank"], rows["step"][-1], rows["t"][-1]) == (0, 7.0, journal.t0 + 2000)
    assert rows["series"]["loss"][-1] == 0.5
