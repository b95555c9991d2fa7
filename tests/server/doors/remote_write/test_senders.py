"""Real senders: Prometheus as an agent, and VictoriaMetrics' agent, which scrape an exporter."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.base.protobuf import double, text, uint, varint
from runvitals.server.http.body_limits import Limits
from tests.patience import PATIENCE_S, eventually
from tests.relay.real_servers import ServerProcess, free_port
from tests.server.doors.remote_write.messages import post, version_1, zigzag
from tests.server.serving import Served, serving

EXPOSED = b"""\
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="node7"} 51
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",Hostname="node7"} 1024
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-1",Hostname="node7"} 3072
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes{Hostname="node7"} 4194304
node_memory_MemAvailable_bytes{Hostname="node7"} 1048576
# TYPE train_queue gauge
train_queue{Hostname="node7",queue="a"} 0
"""
EXPECTED = {
    "gpu.0.temp": 51.0,
    "gpu.0.memoryAllocated": 25.0,
    "memory_percent": 75.0,
}


TEXT = "text/plain; version=0.0.4"
MESSAGES = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"


def family(name: str, kind: int, metric: bytes) -> bytes:
    """A `MetricFamily` with one metric, and its length before it."""
    message = text(1, name) + text(2, "") + uint(3, kind) + text(4, metric)
    return varint(len(message)) + message


def exposed_histogram(scrapes: int) -> bytes:
    """A native histogram, to which each scrape adds the values 1.5 and 3, and a counter of scrapes."""
    spans = text(12, uint(1, zigzag(1)) + uint(2, 2))  # the buckets of schema 0 up to 2 and up to 4
    deltas = uint(13, zigzag(scrapes)) + uint(13, zigzag(0))
    content = uint(1, 2 * scrapes) + double(2, 4.5 * scrapes) + double(6, 1e-9) + uint(7, 0) + spans + deltas
    host = text(1, text(1, "Hostname") + text(2, "node7"))
    return family("wait", 4, host + text(7, content)) + family(
        "scrapes", 0, host + text(3, double(1, scrapes))
    )


class Exporter(BaseHTTPRequestHandler):
    scrapes = 0

    def do_GET(self) -> None:
        Exporter.scrapes += 1
        if self.path == "/native":
            self._send(MESSAGES, exposed_histogram(self.scrapes))
        elif self.path == "/ahead":
            ahead_ms = time.time_ns() // 1_000_000 + 300_000
            ahead = f'ahead{{Hostname="node7"}} 1 {ahead_ms}\nscrapes{{Hostname="node7"}} {self.scrapes}\n'
            self._send(TEXT, ahead.encode())
        else:
            self._send(TEXT, EXPOSED)

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written to stderr."""


@pytest.fixture(scope="module")
def exporter() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("senders")) as served:
        yield served


def scrapes(exporter: str, run: str, url: str | None, path: str = "/metrics") -> str:
    """A configuration of Prometheus, which is JSON as well as YAML."""
    config: dict[str, Any] = {
        "global": {
            "scrape_interval": "250ms",
            "scrape_timeout": "250ms",
            "external_labels": {"runvitals_run": run},
        },
        "scrape_configs": [
            {"job_name": "gpu", "metrics_path": path, "static_configs": [{"targets": [exporter]}]}
        ],
    }
    if url is not None:
        config["remote_write"] = [{"url": url, "send_native_histograms": True}]
    return json.dumps(config)


def prometheus(folder: Path, exporter: str, run: str, url: str, path: str) -> ServerProcess:
    """Prometheus, with native histograms."""
    port, config = free_port(), folder / "config.yml"
    config.write_text(scrapes(exporter, run, url, path))
    words = ["--enable-feature=native-histograms", f"--config.file={config}",
             f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    return ServerProcess("prometheus", words, f"http://127.0.0.1:{port}/-/ready", folder / "log")


def address_of(folder: Path) -> str:
    """The address of the Prometheus of `prometheus`, as its log has it."""
    text = (folder / "log").read_text()
    return "http://" + text.split('msg="Listening on" address=')[1].split()[0]


def agent(
    kind: str, folder: Path, exporter: str, url: str, path: str = "/metrics", run: str = ""
) -> ServerProcess:
    """An agent that sends to an address. `run`: the id of the run; default: its name."""
    port, config = free_port(), folder / "config.yml"
    config.write_text(scrapes(exporter, run or kind, url if kind == "prometheus" else None, path))
    if kind == "prometheus":
        words = ["--enable-feature=agent", f"--config.file={config}", f"--storage.agent.path={folder}/wal",
                 f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
        return ServerProcess("prometheus", words, f"http://127.0.0.1:{port}/-/ready", folder / "log")
    words = [f"-promscrape.config={config}", f"-remoteWrite.url={url}", "-remoteWrite.flushInterval=200ms",
             f"-remoteWrite.tmpDataPath={folder}/wal", f"-httpListenAddr=127.0.0.1:{port}"]  # fmt: skip
    return ServerProcess("vmagent", words, f"http://127.0.0.1:{port}/health", folder / "log")


@pytest.mark.parametrize("kind", ["prometheus", "vmagent"])
def test_an_agent_gives_a_run_its_system_section(
    served: Served, exporter: str, kind: str, tmp_path: Path
) -> None:
    expected = {**EXPECTED, f'train_queue{{instance="{exporter}",job="gpu",queue="a"}}': 0.0}
    latest: dict[str, float] = {}

    def arrived() -> bool:
        parameters = {"keys": list(expected), "resolution": "raw"}
        response = httpx.get(
            f"{served.url}/api/v1/runs/{kind}/metrics", params=parameters, timeout=PATIENCE_S
        )
        if response.status_code == 200:
            for group in response.json()["groups"]:
                latest.update(
                    {key: values[-1] for key, values in group["series"].items() if values[-1] is not None}
                )
        return latest.keys() == expected.keys()

    with agent(kind, tmp_path, exporter, f"{served.url}/api/v1/write"):
        eventually(arrived)
    assert latest == expected


def rows_of(served: Served, run: str, exporter: str, name: str, **labels: str) -> dict[int, float]:
    """The values of a series of the exporter, by time."""
    inner = {"instance": exporter, "job": "gpu", **labels}
    labelled = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(inner.items()))
    return values_of(served, run, f"{name}{{{labelled}}}")


def values_of(served: Served, run: str, key: str) -> dict[int, float]:
    """The values of a series, by time."""
    parameters = {"keys": key, "resolution": "raw"}
    response = httpx.get(f"{served.url}/api/v1/runs/{run}/metrics", params=parameters, timeout=PATIENCE_S)
    if response.status_code != 200:
        return {}
    return {
        t: value
        for group in response.json()["groups"]
        for series in group["series"].values()
        for t, value in zip(group["t"], series, strict=True)
        if value is not None
    }


def value_of(url: str, asked: dict[str, Any]) -> float:
    """The only value in the result of a query."""
    ((one,),) = [httpx.get(url, params=asked, timeout=PATIENCE_S).json()["data"]["result"]]
    return float(one["value"][1])


def test_native_histograms_of_prometheus(served: Served, exporter: str, tmp_path: Path) -> None:
    url = f"{served.url}/api/v1/write"

    def column(name: str, **labels: str) -> dict[int, float]:
        return rows_of(served, "native", exporter, name, **labels)

    with prometheus(tmp_path, exporter, "native", url, "/native"):
        eventually(lambda: len(column("wait_count")) >= 4)
        # The same answers from the sender, which has the histogram itself, at a time that it has sent.
        at_s = sorted(column("wait_count"))[-1] / 1000
        for query in (
            "histogram_count(wait)", "histogram_sum(wait)", "histogram_sum(wait) / histogram_count(wait)",
            "histogram_count(increase(wait[1m])) / histogram_count(increase(wait[1m]))",
            "histogram_quantile(1, wait)", "histogram_quantile(1, sum(wait))",
            "histogram_fraction(0, 4, sum by (job) (wait))", "histogram_fraction(-Inf, 2, wait)",
        ):  # fmt: skip
            asked = {"query": query, "time": at_s}
            ours = value_of(f"{served.url}/prometheus/api/v1/query", asked)
            assert ours == value_of(f"{address_of(tmp_path)}/api/v1/query", asked), query
        average = {"query": "histogram_avg(wait)", "time": at_s}
        assert value_of(f"{served.url}/prometheus/api/v1/query", average) == pytest.approx(2.25)
    scraped = column("scrapes")
    for name, labels, each in (
        ("wait_count", {}, 2), ("wait_sum", {}, 4.5), ("wait_bucket", {"le": "1"}, 0),
        ("wait_bucket", {"le": "2"}, 1), ("wait_bucket", {"le": "4"}, 2), ("wait_bucket", {"le": "+Inf"}, 2),
    ):  # fmt: skip
        values = column(name, **labels)
        assert len(values) >= 3
        assert values == {t: each * scraped[t] for t in values}


def test_a_prometheus_federates_series(served: Served, tmp_path: Path) -> None:
    """It scrapes the newest samples of two exporters, with their labels."""
    now_ms = time.time_ns() // 1_000_000
    about = {"__name__": "jobs_total", "job": "queue", "runvitals_run": "source"}
    sent = [({**about, "instance": f"n1:{port}"}, [(now_ms, float(port))]) for port in (9171, 9172)]
    assert post(served.url, version_1(sent)).status_code == 204
    port, config = free_port(), tmp_path / "config.yml"
    scrape = {
        "job_name": "federate",
        "honor_labels": True,
        "metrics_path": "/prometheus/federate",
        "params": {"match[]": ['jobs_total{run="source"}']},
        "static_configs": [{"targets": [served.url.removeprefix("http://")]}],
    }
    config.write_text(json.dumps({"global": {"scrape_interval": "250ms"}, "scrape_configs": [scrape]}))
    words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/tsdb",
             f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip

    def scraped() -> dict[tuple[str, str], str]:
        url = f"http://127.0.0.1:{port}/api/v1/query"
        result = httpx.get(url, params={"query": "jobs_total"}, timeout=PATIENCE_S).json()["data"]["result"]
        return {(one["metric"]["instance"], one["metric"]["job"]): one["value"][1] for one in result}

    with ServerProcess("prometheus", words, f"http://127.0.0.1:{port}/-/ready", tmp_path / "log"):
        eventually(lambda: len(scraped()) == 2)
        assert scraped() == {("n1:9171", "queue"): "9171", ("n1:9172", "queue"): "9172"}
    refused = httpx.get(f"{served.url}/prometheus/federate", timeout=PATIENCE_S)
    assert (refused.status_code, refused.json()["errorType"]) == (400, "bad_data")


def test_prometheus_goes_on_after_a_sample_that_is_refused(exporter: str, tmp_path: Path) -> None:
    """Each request has a sample from the future, and is answered with 400."""
    with serving(tmp_path / "server", limits=Limits(ahead_ms=60_000)) as served:
        _goes_on(served, exporter, tmp_path)


def _goes_on(served: Served, exporter: str, tmp_path: Path) -> None:
    url = f"{served.url}/api/v1/write"

    def scraped() -> dict[int, float]:
        return rows_of(served, "ahead", exporter, "scrapes")

    log = tmp_path / "log"
    with agent("prometheus", tmp_path, exporter, url, "/ahead", "ahead"):
        eventually(lambda: len(scraped()) >= 4 and "samples are too far in the future" in log.read_text())
    values = [value for _, value in sorted(scraped().items())]
    assert values == sorted(set(values))  # none twice
    missing = int(values[-1] - values[0]) + 1 - len(values)
    up = rows_of(served, "ahead", exporter, "up").values()
    assert 1.0 in up
    assert missing <= sum(value == 0 for value in up)  # on a busy machine, Prometheus gives up some scrapes
    assert rows_of(served, "ahead", exporter, "ahead") == {}
