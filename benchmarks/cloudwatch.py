"""An hour of 25 metrics at 5 s to CloudWatch: one request per report, compared with one per minute.

    python -m benchmarks.cloudwatch

Requires boto3. A fake server in another process counts requests and bytes. CPU time is that of the sending
process, from the decoded report to the response.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from typing import Any

import boto3

from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.client import CloudWatchClient
from runvitals.relay.destinations.cloudwatch.datum import MetricSeries
from runvitals.relay.destinations.cloudwatch.minute_aggregation import MinuteAggregation

METRICS = 25
INTERVAL_S = 5
HOUR_S = 3600


def serve(connection: Connection) -> None:
    """Serve PutMetricData until asked to stop; then send back the numbers of requests and bytes."""
    came = {"requests": 0, "bytes": 0}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            came["requests"] += 1
            came["bytes"] += len(self.requestline) + sum(len(k) + len(v) + 4 for k, v in self.headers.items())
            came["bytes"] += len(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", self.headers["Content-Type"])
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    connection.send(server.server_port)
    server.timeout = 0.05
    while not connection.poll():
        server.handle_request()
    connection.send(came)


@contextmanager
def counting() -> Iterator[Callable[[], dict[str, int]]]:
    """A fake server that boto3 finds through the environment; yields a function that returns its counts."""
    here, there = Pipe()
    process = Process(target=serve, args=(there,), daemon=True)
    process.start()
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{here.recv()}"

    def came() -> dict[str, int]:
        here.send(None)
        counts: dict[str, int] = here.recv()
        return counts

    yield came
    process.join()


def value(metric: int, second: int) -> float:
    """Varying readings, like utilizations."""
    return (metric * 7919 + second * 104_729) % 10_007 / 100.07


def one_by_one(start_s: int) -> Callable[[], None]:
    """One request per report, like a simple script."""
    client: Any = boto3.client("cloudwatch")

    for second in range(0, HOUR_S, INTERVAL_S):
        client.put_metric_data(
            Namespace="Neuron",
            MetricData=[
                {
                    "MetricName": f"NeuronCoreUtilizationNC{metric}",
                    "Value": value(metric, second),
                    "Unit": "Percent",
                    "Timestamp": start_s + second,
                }
                for metric in range(METRICS)
            ],
        )
    close: Callable[[], None] = client.close
    return close


def folded(start_s: int) -> Callable[[], None]:
    """One request per minute, like `runvitals cloudwatch`."""
    client = CloudWatchClient("Neuron")
    fold = MinuteAggregation()
    for second in range(0, HOUR_S, INTERVAL_S):
        now_ms = (start_s + second) * 1000
        for metric in range(METRICS):
            fold.add(
                MetricSeries(f"NeuronCoreUtilizationNC{metric}", "Percent"), now_ms, value(metric, second)
            )
        if (second + INTERVAL_S) % 60 == 0:
            for request in limits.pack_requests(fold.take(), client.protocol):
                client.put(request)
    return client.close


def main() -> None:
    os.environ.update(
        AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
    )  # fmt: skip
    start_s = int(time.time()) // 60 * 60 - HOUR_S
    points = METRICS * HOUR_S // INTERVAL_S
    print(f"{METRICS} metrics every {INTERVAL_S} s for an hour: {points} points; boto3 {boto3.__version__}\n")
    print("| | requests | bytes | µs of CPU a point | requests, USD a month |")
    print("|---|---|---|---|---|")
    boto3.client("cloudwatch", region_name="us-east-1")  # boto3's own start is in neither
    for name, send in (("a request a report", one_by_one), ("folded, a request a minute", folded)):
        with counting() as came:
            began = time.process_time()
            close = send(start_s)
            cpu_s = time.process_time() - began
            close()
            total = came()
        usd = total["requests"] * 24 * 30 * 0.01 / 1000
        figures = f"{total['requests']} | {total['bytes']:,} | {cpu_s / points * 1e6:.1f} | {usd:.2f}"
        print(f"| {name} | {figures} |")


if __name__ == "__main__":
    main()
