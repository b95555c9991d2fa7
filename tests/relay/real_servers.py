"""Real Prometheus and VictoriaMetrics servers, to which tests deliver."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.patience import PATIENCE_S


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def get(url: str, accept: str = "*/*") -> tuple[bytes, str]:
    """(body, content type)."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        request, timeout=PATIENCE_S
    ) as response:
        return response.read(), response.headers["Content-Type"]


class ServerProcess:
    """A server process that runs for the duration of a block. The test is skipped if it is not installed."""

    def __init__(self, name: str, arguments: Sequence[str], ready: str, log: Path) -> None:
        program = shutil.which(name)
        if program is None:
            pytest.skip(f"{name} is not installed")
        self._log = log.open("wb")
        self._process = subprocess.Popen([program, *arguments], stdout=self._log, stderr=subprocess.STDOUT)
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                get(ready)
                return
            except OSError:
                assert self._process.poll() is None, log.read_text()
                assert time.monotonic() < until_s, log.read_text()
                time.sleep(0.05)

    def __enter__(self) -> Any:
        return self

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._log.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Prometheus(ServerProcess):
    """Prometheus; accepts remote write, and scrapes `targets` five times a second."""

    def __init__(self, folder: Path, targets: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        scrape = {"job_name": "runs", "static_configs": [{"targets": list(targets)}]}
        config = {
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
            "scrape_configs": [scrape] if targets else [],
        }
        (folder / "config.yml").write_text(json.dumps(config))
        words = [
            f"--config.file={folder}/config.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--web.enable-remote-write-receiver",
            "--enable-feature=native-histograms",
        ]
        super().__init__("prometheus", words, f"{self.url}/-/ready", folder / "log")

    def ask(self, path: str, **parameters: Any) -> Any:
        return ask(f"{self.url}/api/v1/{path}", **parameters)


class VictoriaMetrics(ServerProcess):
    """VictoriaMetrics."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        words = [
            f"-storageDataPath={folder}/data",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-search.latencyOffset=0s",
            "-memory.allowedPercent=10",
        ]
        super().__init__("victoria-metrics", words, f"{self.url}/health", folder / "log")

    def ask(self, path: str, **parameters: Any) -> Any:
        return ask(f"{self.url}/api/v1/{path}", **parameters)

    def exported(self, match: str) -> list[dict[str, Any]]:
        """All stored data of the matching series, once it is readable."""
        get(f"{self.url}/internal/force_flush")
        body, _ = get(f"{self.url}/api/v1/export?{urllib.parse.urlencode({'match[]': match})}")
        return [json.loads(line) for line in body.splitlines()]


def ask(url: str, **parameters: Any) -> Any:
    """The data of a response of Prometheus' query API."""
    try:
        body, _ = get(f"{url}?{urllib.parse.urlencode(parameters)}")
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from None
    response = json.loads(body)
    assert response["status"] == "success", response
    return response["data"]
