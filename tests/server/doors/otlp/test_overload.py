"""What senders see when the server cannot take their points, and what it remembers then."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status

from runvitals.server.doors.otlp import protobuf_decoding
from runvitals.server.doors.otlp.conversion import Conversion
from runvitals.server.doors.otlp.grpc_server import OtlpGrpcServer
from runvitals.server.doors.otlp.series import RememberedRun, ResourceSeries
from runvitals.server.doors.routing import DEFAULT_RULES, route_of
from runvitals.server.http.body_limits import Limits
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S
from tests.server.doors.otlp.messages import DELTA, gauge, request, total
from tests.server.serving import Served, serving

NOW_MS = 1_800_000_000_000
FAR_MS = 4_000_000_000_000
EXPORT = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has as many requests in flight as it takes."""
    with serving(tmp_path_factory.mktemp("full"), limits=Limits(requests_in_flight=0)) as served:
        yield served


def test_a_full_server_says_when_to_send_again(full: Served) -> None:
    headers = {"content-type": "application/x-protobuf"}
    response = httpx.post(f"{full.url}/v1/metrics", content=b"", headers=headers, timeout=PATIENCE_S)
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    assert Status.FromString(response.content).code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    with (
        OtlpGrpcServer("127.0.0.1:0", full.address) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
        pytest.raises(grpc.RpcError) as raised,
    ):
        channel.unary_unary(EXPORT)(b"")
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    status = Status.FromString(dict(raised.value.trailing_metadata())["grpc-status-details-bin"])
    assert status.details[0].type_url == "type.googleapis.com/google.rpc.RetryInfo"


def test_differences_that_were_not_stored_count_when_they_are_sent_again() -> None:
    point = {"time_unix_nano": NOW_MS * 10**6, "as_double": 3.0}
    body = request({}, total("tokens", "1", point, temporality=DELTA)).SerializeToString()
    (resource,) = protobuf_decoding.decode(body)
    run = RememberedRun()
    series = ResourceSeries({}, route_of({}), DEFAULT_RULES, run)

    def converted() -> tuple[Conversion, int]:
        conversion = Conversion(NOW_MS, Limits())
        conversion.add(resource, series, run)
        return conversion, len(list(conversion.envelopes()))

    assert converted()[1] == 1
    conversion, count = converted()  # the first one was not committed
    assert count == 1
    conversion.commit()
    assert converted()[1] == 0


def test_the_command_receives_grpc(tmp_path: Path) -> None:
    command = ["server", "--listen", "127.0.0.1:0", "--store", str(tmp_path), "--otlp-grpc", "127.0.0.1:0"]
    process = ForkedCommand(*command, env={**os.environ, "GRPC_VERBOSITY": "NONE"})
    try:
        lines = iter(process.stdout.readline, "")
        address = next(match for line in lines if (match := re.search(r"OTLP over gRPC on (\S+)", line)))
        point = {"time_unix_nano": FAR_MS * 10**6, "as_double": 3.0}
        body = request({}, gauge("queue", "1", point)).SerializeToString()
        with grpc.insecure_channel(address[1]) as channel:
            response = channel.unary_unary(EXPORT)(body, timeout=PATIENCE_S, wait_for_ready=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
    assert b"a day ahead" in response
