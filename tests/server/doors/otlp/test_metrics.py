"""Metrics that arrive by OTLP over HTTP, and what the API then shows."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import httpx
import pytest
import zstandard
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from runvitals.server.doors.otlp import series
from tests.patience import PATIENCE_S, eventually
from tests.server.doors.otlp.conftest import Receiving
from tests.server.doors.otlp.messages import CUMULATIVE, DELTA, NO_VALUE, gauge, histogram, request, total

S = 1_000_000_000


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "zstd"])
@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_gauges_and_sums(receiving: Receiving, now_ns: int, kind: str, encoding: str) -> None:
    run = f"numbers-{kind}-{encoding}"
    message = request(
        {"runvitals.run": run, "host.name": "node1"},
        gauge(
            "system.memory.usage",
            "By",
            {"time_unix_nano": now_ns, "as_int": 3 << 20, "attributes": {"state": "used"}},
            {"time_unix_nano": now_ns + S, "as_double": 5 * 2.0**20, "attributes": {"state": "used"}},
            {"time_unix_nano": now_ns, "as_double": 7.0, "attributes": {"state": "slab"}},
        ),
        total(
            "requests",
            "1",
            {"start_time_unix_nano": 5, "time_unix_nano": now_ns, "as_int": 4, "attributes": {"code": 200}},
            {"start_time_unix_nano": 5, "time_unix_nano": now_ns, "as_int": -1, "attributes": {"code": 500}},
        ),
    )
    body = message.SerializeToString()
    if kind == "json":
        body = json_format.MessageToJson(message, use_integers_for_enums=True).encode()
    pack: Any = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "zstd": zstandard.ZstdCompressor().compress,
        "": bytes,
    }[encoding]
    headers = {"content_encoding": encoding} if encoding else {}
    content_type = "application/json" if kind == "json" else "application/x-protobuf"
    response = receiving.post(pack(body), content_type=content_type, **headers)
    assert response.status_code == 200, response.text
    assert (response.content, response.headers["content-type"]) == (
        b"{}" if kind == "json" else b"",
        content_type,
    )
    assert receiving.keys(run) == {
        "memory.usedMB",
        'system.memory.usage{state="slab"}',
        'requests{code="200"}',
        'requests{code="500"}',
    }
    now_ms = now_ns // 1_000_000
    assert receiving.values(run, "memory.usedMB") == {now_ms: 3.0, now_ms + 1000: 5.0}
    assert receiving.values(run, 'requests{code="500"}') == {now_ms: -1.0}


def send(receiving: Receiving, run: str, *metrics: Metric, **resource: Any) -> None:
    message = request({"runvitals.run": run, "host.name": "node1", **resource}, *metrics)
    response = receiving.post(message.SerializeToString())
    assert (response.status_code, response.content) == (200, b""), response.text


def of(receiving: Receiving, run: str, key: str) -> list[float | None]:
    return list(receiving.values(run, key).values())


def test_differences_are_added_up(receiving: Receiving, now_ns: int) -> None:
    for second, value in ((0, 3.0), (1, 2.0), (1, 2.0), (2, 5.0)):  # one of them is sent twice
        point = {"start_time_unix_nano": now_ns, "time_unix_nano": now_ns + second * S, "as_double": value}
        send(receiving, "deltas", total("tokens", "1", point, temporality=DELTA))
    assert of(receiving, "deltas", "tokens") == [3.0, 5.0, 10.0]


def test_differences_of_all_processes_of_a_host_are_added_up(receiving: Receiving, now_ns: int) -> None:
    for second, pid, value in ((0, 1, 3.0), (1, 2, 4.0), (2, 1, 5.0), (2, 1, 5.0), (3, 2, 6.0)):
        point = {"start_time_unix_nano": now_ns, "time_unix_nano": now_ns + second * S, "as_double": value}
        counted = {**point, "count": 2, "sum": value, "bucket_counts": [2], "explicit_bounds": []}
        del counted["as_double"]
        metrics = (
            total("tokens", "1", point, temporality=DELTA),
            histogram("latency", "ms", counted, temporality=DELTA),
        )
        send(receiving, "processes", *metrics, **{"process.pid": pid})
    assert of(receiving, "processes", "tokens") == [3.0, 7.0, 12.0, 18.0]
    assert of(receiving, "processes", "latency.sum") == [3.0, 7.0, 12.0, 18.0]
    assert of(receiving, "processes", "latency.count") == [2.0, 4.0, 6.0, 8.0]


def test_a_histogram_has_the_percentiles_of_the_time_since_the_previous_point(
    receiving: Receiving, now_ns: int
) -> None:
    for second, counts in enumerate(([4, 4, 0], [4, 4, 10])):
        point = {
            "start_time_unix_nano": now_ns - S,
            "time_unix_nano": now_ns + second * S,
            "count": sum(counts),
            "sum": float(10 * sum(counts)),
            "bucket_counts": counts,
            "explicit_bounds": [10.0, 20.0],
            "max": 30.0,
            "attributes": {"route": "/x"},
        }
        send(receiving, "histogram", histogram("latency", "ms", point))
    assert of(receiving, "histogram", 'latency.count{route="/x"}') == [8.0, 18.0]
    assert of(receiving, "histogram", 'latency.sum{route="/x"}') == [80.0, 180.0]
    assert of(receiving, "histogram", 'latency.mean{route="/x"}') == [10.0, 10.0]
    assert of(receiving, "histogram", 'latency.p90{route="/x"}') == [18.0, 29.0]
    assert of(receiving, "histogram", 'latency.max{route="/x"}') == [30.0, 30.0]


def test_percentiles_lie_between_the_minimum_and_the_maximum(receiving: Receiving, now_ns: int) -> None:
    point = {"time_unix_nano": now_ns, "count": 4, "sum": 2.0, "min": 0.2, "max": 0.8}
    sent = {"wide": ([4, 0], [5.0]), "endless": ([0, 4], [0.0]), "lying": ([0, 4, 0], [5.0, 6.0])}
    metrics = [
        histogram(name, "ms", {**point, "bucket_counts": counts, "explicit_bounds": bounds})
        for name, (counts, bounds) in sent.items()
    ]
    send(receiving, "narrow", *metrics)
    medians = {name: of(receiving, "narrow", f"{name}.p50") for name in sent}
    assert medians == {"wide": [pytest.approx(0.5)], "endless": [pytest.approx(0.5)], "lying": [5.5]}


def test_differences_of_a_histogram_are_added_up(receiving: Receiving, now_ns: int) -> None:
    for second in range(2):
        point = {
            "time_unix_nano": now_ns + second * S,
            "count": 2,
            "sum": 6.0,
            "bucket_counts": [2, 0],
            "explicit_bounds": [5.0],
        }
        send(receiving, "histogram-d", histogram("latency", "ms", point, temporality=DELTA))
    assert of(receiving, "histogram-d", "latency.count") == [2.0, 4.0]
    assert of(receiving, "histogram-d", "latency.sum") == [6.0, 12.0]
    assert of(receiving, "histogram-d", "latency.mean") == [3.0, 3.0]


def test_exponential_histograms_and_summaries(receiving: Receiving, now_ns: int) -> None:
    exponential = Metric(name="size", unit="By")
    point = exponential.exponential_histogram.data_points.add(
        time_unix_nano=now_ns, count=8, sum=20.0, scale=0, zero_count=2
    )
    point.positive.offset = 1
    point.positive.bucket_counts.extend([0, 6])  # 6 from 4 to 8
    summary = Metric(name="wait", unit="s")
    values = summary.summary.data_points.add(time_unix_nano=now_ns, count=4, sum=2.0)
    values.quantile_values.add(quantile=0.5, value=0.25)
    values.quantile_values.add(quantile=0.99, value=1.5)
    send(receiving, "distributions", exponential, summary)
    assert receiving.keys("distributions") == {
        *(f"size.{part}" for part in ("count", "sum", "mean", "p50", "p90", "p99")),
        *(f'size.bucket{{le="{bound}"}}' for bound in ("4", "8", "+Inf")),
        *(f"wait.{part}" for part in ("count", "sum", "p50", "p99")),
    }
    assert of(receiving, "distributions", "size.p50") == [pytest.approx(4 + 4 * 2 / 6)]
    assert of(receiving, "distributions", "wait.p99") == [1.5]


def test_a_point_without_a_value_is_a_gap(receiving: Receiving, now_ns: int) -> None:
    points = [
        {"time_unix_nano": now_ns, "as_double": 1.0},
        {"time_unix_nano": now_ns + S, "flags": NO_VALUE},
        {"time_unix_nano": now_ns + 2 * S, "as_double": 2.0, "flags": NO_VALUE, "attributes": {}},
        {"time_unix_nano": now_ns + 3 * S, "as_double": 3.0},
    ]
    send(receiving, "gaps", gauge("queue", "1", *points))
    assert of(receiving, "gaps", "queue") == [1.0, None, None, 3.0]


def test_names_and_attributes_in_queries(receiving: Receiving, now_ns: int) -> None:
    points = [
        {"time_unix_nano": now_ns, "as_double": float(value), "attributes": {"http.route": route}}
        for value, route in ((1, "/a"), (2, "/b"))
    ]
    one = {"time_unix_nano": now_ns, "as_double": 5.0}
    message = request(
        {"runvitals.run": "names", "host.name": "node1"},
        gauge("requests.open", "1", *points),
        total("energy.j", "J", {"start_time_unix_nano": 5, **one}),
    )
    assert receiving.post(message.SerializeToString()).status_code == 200

    def queried(query: str) -> list[tuple[dict[str, str], str]]:
        url = f"{receiving.served.url}/prometheus/api/v1/query"
        result = httpx.get(url, params={"query": query}, timeout=PATIENCE_S).json()["data"]["result"]
        return [(series["metric"], series["value"][1]) for series in result]

    eventually(lambda: queried('requests_open{run="names"}'))
    ((labels, value),) = queried('requests_open{http_route="/b",run="names"}')
    assert (labels["host"], value) == ("node1", "2")
    assert [value for _, value in queried('sum(requests_open{run="names"})')] == ["3"]
    assert [value for _, value in queried('energy_j{run="names"}')] == ["5"]
    assert [value for _, value in queried('energy_j_joules_total{run="names"}')] == ["5"]
    assert [value for _, value in queried('sum(requests_open_ratio{run="names"})')] == ["3"]
    assert len(queried('{__name__=~".*(open|energy).*",run="names"}')) == 3
    assert queried('runvitals_energy_joules_total{run="names"}') == []


@pytest.mark.parametrize("temporality", [CUMULATIVE, DELTA])
def test_quantiles_of_histograms_in_queries(receiving: Receiving, now_ns: int, temporality: int) -> None:
    run = f"quantiles-{temporality}"
    size = Metric(name="size", unit="By")
    size.exponential_histogram.aggregation_temporality = temporality
    points = []
    for minute in range(3):
        times = 1 if temporality == DELTA else minute + 1
        counts = [0, 2 * times, 4 * times, 4 * times]
        about: dict[str, Any] = {
            "start_time_unix_nano": now_ns - 600 * S,
            "time_unix_nano": now_ns + (minute - 3) * 60 * S,
        }
        about |= {"count": 10 * times, "sum": 3.0 * times}
        points.append({**about, "bucket_counts": counts, "explicit_bounds": [0.1, 0.25, 0.5]})
        one = size.exponential_histogram.data_points.add(**about, scale=3, zero_count=2 * times)
        one.positive.offset = 8  # from 2 to 4
        one.positive.bucket_counts.extend([times] * 8)
    latency = histogram("http.server.request.duration", "s", *points, temporality=temporality)
    send(receiving, run, latency, size)

    def queried(query: str) -> list[float]:
        url = f"{receiving.served.url}/prometheus/api/v1/query"
        parameters = {"query": query, "time": now_ns / S}
        result = httpx.get(url, params=parameters, timeout=PATIENCE_S).json()["data"]["result"]
        return [float(series["value"][1]) for series in result]

    name = "http_server_request_duration_seconds"
    buckets = f'sum by (le) (rate({name}_bucket{{run="{run}"}}[5m]))'
    eventually(lambda: queried(buckets))
    assert queried(f"histogram_quantile(0.4, {buckets})") == [pytest.approx(0.375)]
    assert queried(f'sum by (le) ({name}_bucket{{run="{run}",le="+Inf"}})') == [30.0]
    sizes = f'sum by (le) (rate(size_bytes_bucket{{run="{run}"}}[5m]))'
    assert queried(f"histogram_quantile(0.6, {sizes})") == [pytest.approx(3.0)]


@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_a_wrong_histogram_does_not_stop_the_others(receiving: Receiving, now_ns: int, kind: str) -> None:
    about = {"time_unix_nano": now_ns, "count": 3, "sum": 3.0}
    message = request(
        {"runvitals.run": f"wrong-{kind}", "host.name": "node1"},
        histogram("few", "1", {**about, "explicit_bounds": [1.0, 2.0], "bucket_counts": [3]}),
        histogram("unordered", "1", {**about, "explicit_bounds": [2.0, 1.0], "bucket_counts": [1, 1, 1]}),
        gauge("right", "1", {"time_unix_nano": now_ns, "as_double": 1.0}),
    )
    body = message.SerializeToString()
    if kind == "json":
        body = json_format.MessageToJson(message, use_integers_for_enums=True).encode()
    content_type = "application/json" if kind == "json" else "application/x-protobuf"
    response = receiving.post(body, content_type=content_type)
    answer = ExportMetricsServiceResponse()
    if kind == "json":
        json_format.Parse(response.text, answer)
    else:
        answer.ParseFromString(response.content)
    assert (response.status_code, answer.partial_success.rejected_data_points) == (200, 2)
    assert "2 bounds" in answer.partial_success.error_message
    assert "ascend" in answer.partial_success.error_message


def test_ranks_and_services_of_a_host_are_told_apart(receiving: Receiving, now_ns: int) -> None:
    point = {"time_unix_nano": now_ns, "as_double": 2.0**20}
    metrics = gauge("queue", "1", point), gauge("process.memory.usage", "By", point)
    for rank in range(2):
        send(receiving, "ranks", *metrics, **{"runvitals.rank": rank})
    assert receiving.keys("ranks") == {
        *(f'{name}{{rank="{rank}"}}' for name in ("queue", "process.memory.usage") for rank in range(2))
    }
    send(receiving, "alone", *metrics)
    assert receiving.keys("alone") == {"queue", "proc.memory.rssMB"}
    for service in ("api", "web"):
        message = request({"service.name": service, "host.name": "node7"}, *metrics)
        assert receiving.post(message.SerializeToString()).status_code == 200
    assert receiving.keys("host-node7") == {
        'queue{service.name="api"}',
        'queue{service.name="web"}',
        "proc.memory.rssMB",
    }


def test_the_run_has_a_name_and_the_attributes(receiving: Receiving, now_ns: int) -> None:
    resource = {"k8s.namespace.name": "ml", "k8s.job.name": "bert", "k8s.job.uid": "0a1b", "gpus": 8}
    message = request(resource, gauge("queue", "1", {"time_unix_nano": now_ns, "as_double": 1.0}))
    assert receiving.post(message.SerializeToString(), x_runvitals_project="langu%C3%A4ge").status_code == 200
    run = receiving.get("runs/k8s-0a1b")
    assert (run["name"], run["project"], run["state"]) == ("bert", "languäge", "running")
    assert run["config"]["resource"] == {name: str(value) for name, value in resource.items()}


def test_wrong_points_are_rejected_and_the_others_stored(receiving: Receiving, now_ns: int) -> None:
    good = {"time_unix_nano": now_ns, "as_double": 1.0}
    points = [
        good,
        {"as_double": 1.0},
        {**good, "time_unix_nano": now_ns + 10**15},
        {**good, "time_unix_nano": 7},
    ]
    message = request({"runvitals.run": "partial"}, gauge("queue", "1", *points), gauge("", "1", good))
    response = receiving.post(message.SerializeToString())
    assert response.status_code == 200
    partial = ExportMetricsServiceResponse.FromString(response.content).partial_success
    assert partial.rejected_data_points == 4
    assert "2 points: with a time before 2000, or over a day ahead" in partial.error_message
    assert "1 points: without a time" in partial.error_message
    assert "1 points: a metric without a name" in partial.error_message
    assert of(receiving, "partial", "queue") == [1.0]
    as_json = json_format.MessageToJson(message, use_integers_for_enums=True)
    body = receiving.post(as_json.encode(), content_type="application/json").json()
    assert body["partialSuccess"]["rejectedDataPoints"] == "4"


def _point(fields: bytes) -> bytes:
    """A request with one point."""
    metric = b'{"name": "x", "gauge": {"dataPoints": [{%b}]}}' % fields
    return b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [%b]}]}]}' % metric


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (b'"timeUnixNano": "now"', "invalid integer 'now'"),
        (b'"asDouble": "high"', "invalid number 'high'"),
        (b'"asInt": 1.5', "Expected `int | str | null`"),
        (b'"attributes": 7', "Expected `array`"),
        (b'"attributes": [{"key": "a", "value": {"arrayValue": 7}}]', "'int' object"),
    ],
)
def test_a_point_that_is_invalid_json_is_rejected_alone(
    receiving: Receiving, now_ns: int, fields: bytes, why: str
) -> None:
    good = b'{"timeUnixNano": "%d", "asDouble": 1}' % now_ns
    bad = _point(fields).replace(b"[{" + fields + b"}]", b"[{" + fields + b"}, " + good + b"]")
    response = receiving.post(bad, content_type="application/json")
    assert response.status_code == 200, response.text
    partial = response.json()["partialSuccess"]
    assert partial["rejectedDataPoints"] == "1"
    assert why in partial["errorMessage"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b"\xff\xff", {}, 400, "invalid ExportMetricsServiceRequest"),
        (b"{", {"content_type": "application/json"}, 400, "invalid ExportMetricsServiceRequest"),
        (b'{"resourceMetrics": 7}', {"content_type": "application/json"}, 400, "Expected `array`"),
        (b"", {"content_type": "text/plain"}, 415, "unknown Content-Type 'text/plain'"),
        (b"", {"content_encoding": "br"}, 415, "unknown Content-Encoding 'br'"),
        (b"x", {"content_encoding": "gzip"}, 400, "invalid compressed body"),
        (gzip.compress(bytes(1 << 25)), {"content_encoding": "gzip"}, 413, "decompressed"),
        (bytes(9 << 20), {}, 413, "bytes"),
        (b"\x0a\x00" * 300_000, {}, 413, "more than 5,000 resources"),
        (
            b'{"resourceMetrics": [' + b'{"scopeMetrics": []},' * 5001 + b"{}]}",
            {"content_type": "application/json"},
            413,
            "more than 5,000 resources",
        ),
    ],
)
def test_invalid_requests(
    receiving: Receiving, body: bytes, headers: dict[str, str], status: int, why: str
) -> None:
    response = receiving.post(body, **headers)
    assert response.status_code == status
    if headers.get("content_type") == "application/json":
        message = response.json()["message"]
    else:
        assert response.headers["content-type"] == "application/x-protobuf"
        message = Status.FromString(response.content).message
    assert why in message


@pytest.mark.parametrize("signal", ["logs", "traces"])
def test_other_signals_are_refused(receiving: Receiving, signal: str) -> None:
    response = receiving.post(b"", path=f"/v1/{signal}")
    assert response.status_code == 501
    status = Status.FromString(response.content)
    assert status.code == 12
    assert status.message.startswith(f"{signal} are not stored: send metrics only, to /v1/metrics")
    assert ("Jaeger" in status.message) == (signal == "traces")


def test_only_post_is_allowed(receiving: Receiving) -> None:
    response = receiving.request("GET", "/otlp/v1/metrics")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_too_many_series_of_a_run_are_rejected(
    receiving: Receiving, now_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "MAX_KEYS", 3)
    points = [{"time_unix_nano": now_ns, "as_double": 1.0, "attributes": {"user": str(n)}} for n in range(5)]
    message = request({"runvitals.run": "many"}, gauge("queue", "1", *points))
    response = receiving.post(message.SerializeToString())
    partial = ExportMetricsServiceResponse.FromString(response.content).partial_success
    assert (partial.rejected_data_points, len(receiving.keys("many"))) == (2, 3)
    assert "the run has 3 metrics with attributes already" in partial.error_message


def test_shares_of_the_processors_are_computed(receiving: Receiving, now_ns: int) -> None:
    for second in range(4):
        points = [
            {
                "start_time_unix_nano": 1,
                "time_unix_nano": now_ns + second * S,
                "as_double": 100.0 + seconds * second,
                "attributes": {"cpu": f"cpu{cpu}", "state": state},
            }
            for cpu in range(2)
            for state, seconds in (("user", 0.25), ("wait", 0.25), ("idle", 0.5))
        ]
        send(receiving, "processors", total("system.cpu.time", "s", *points))
    assert {"cpu.mean", "cpu.user", "cpu.iowait", "cpu.1.cpu_percent"} <= receiving.keys("processors")
    assert of(receiving, "processors", "cpu.mean")[-1] == pytest.approx(25.0)
    assert of(receiving, "processors", "cpu.iowait")[-1] == pytest.approx(25.0)


def test_metrics_that_a_collector_read_from_an_exporter(receiving: Receiving, now_ns: int) -> None:
    point = {"time_unix_nano": now_ns, "as_double": 61.0, "attributes": {"gpu": "1", "UUID": "GPU-6f"}}
    message = request(
        {"service.name": "dcgm", "host.name": "gpu-a"}, gauge("DCGM_FI_DEV_GPU_TEMP", "", point)
    )
    assert receiving.post(message.SerializeToString()).status_code == 200
    assert of(receiving, "host-gpu-a", "gpu.1.temp") == [61.0]


def of_resources(number: int, now_ns: int) -> ExportMetricsServiceRequest:
    """A request with a run for each resource."""
    message = ExportMetricsServiceRequest()
    for run in range(number):
        resource = request(
            {"runvitals.run": f"many-{run}"}, gauge("m", "1", {"time_unix_nano": now_ns, "as_int": run})
        )
        message.MergeFrom(resource)
    return message


def test_many_resources_are_stored_in_parts_and_too_many_are_refused(
    receiving: Receiving, now_ns: int
) -> None:
    assert receiving.post(of_resources(250, now_ns).SerializeToString()).status_code == 200
    for run in (0, 99, 100, 249):
        assert receiving.keys(f"many-{run}") == {"m"}
    refused = receiving.post(of_resources(5001, now_ns).SerializeToString())
    assert refused.status_code == 413
    assert "more than 5,000 resources in one request" in Status.FromString(refused.content).message
