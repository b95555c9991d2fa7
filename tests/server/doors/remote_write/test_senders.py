"""Real senders: Prometheus as an agent, and VictoriaMetrics' agent, which scrape an exporter."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, eventually
from tests.relay.real_servers import ServerProcess, free_port
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


class Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(EXPOSED)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written to stderr."""


@pytest.fixture(scope="module")
def exporter() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("senders")) as served:
        yield served


def scrapes(exporter: str, run: str, url: str | None) -> str:
    """A configuration of Prometheus, which is JSON as well as YAML."""
    config: dict[str, Any] = {
        "global": {
            "scrape_interval": "250ms",
            "scrape_timeout": "250ms",
            "external_labels": {"runvitals_run": run},
        },
        "scrape_configs": [{"job_name": "gpu", "static_configs": [{"targets": [exporter]}]}],
    }
    if url is not None:
        config["remote_write"] = [{"url": url}]
    return json.dumps(config)


def agent(kind: str, folder: Path, exporter: str, url: str) -> ServerProcess:
    """An agent that sends to an address; its runs have its name."""
    port, config = free_port(), folder / "config.yml"
    config.write_text(scrapes(exporter, kind, url if kind == "prometheus" else None))
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
        asked = {"keys": list(expected), "resolution": "raw"}
        found = httpx.get(f"{served.url}/api/v1/runs/{kind}/metrics", params=asked, timeout=PATIENCE_S)
        if found.status_code == 200:
            for group in found.json()["groups"]:
                latest.update(
                    {key: values[-1] for key, values in group["series"].items() if values[-1] is not None}
                )
        return latest.keys() == expected.keys()

    with agent(kind, tmp_path, exporter, f"{served.url}/api/v1/write"):
        eventually(arrived)
    assert latest == expected
