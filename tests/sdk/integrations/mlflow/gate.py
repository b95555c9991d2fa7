"""A real `mlflow server`, and a proxy in front of it that records requests and can reject them."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.patience import PATIENCE_S

_KEPT = ("Content-Type", "User-Agent")


class Server:
    """An `mlflow server` with a SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "mlflow.db"
        # It must be told its port. Between this and its start nobody else is likely to be given it.
        with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
            self.port = free.server_address[1]
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{self.database}"]
        environ = {
            **os.environ,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        self.log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(command, env=environ, cwd=folder, stdout=self.log, stderr=self.log)
        until_s = time.monotonic() + PATIENCE_S
        while not self._is_up():
            assert self._process.poll() is None, (folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < until_s, "the server does not answer"
            time.sleep(0.1)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/health", timeout=PATIENCE_S
            ) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self.log.close()

    def ask(self, what: str, **question: Any) -> Any:
        """An answer of its REST interface."""
        path, method = f"http://127.0.0.1:{self.port}/api/2.0/mlflow/{what}", "POST"
        if what.endswith("/get") or "/get-" in what:
            path, method = f"{path}?{'&'.join(f'{key}={text}' for key, text in question.items())}", "GET"
        body = json.dumps(question).encode() if method == "POST" else None
        request = urllib.request.Request(path, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return json.loads(response.read())

    def run(self, run: str) -> Any:
        return self.ask("runs/get", run_id=run)["run"]

    def keys(self, run: str) -> set[str]:
        return {metric["key"] for metric in self.run(run)["data"].get("metrics", ())}

    def system(self, run: str) -> set[str]:
        return {key for key in self.keys(run) if key.startswith("system/")}

    def steps(self, run: str, key: str) -> list[int]:
        """The steps of a metric's points, in the order of their times."""
        metrics = self.ask("metrics/get-history", run_id=run, metric_key=key).get("metrics", ())
        return [metric["step"] for metric in sorted(metrics, key=lambda metric: metric["timestamp"])]


class Gate:
    """The proxy, which scripts use as the tracking server.

    Attributes:
        failing: whether `log-batch` gets 503.
        passed: (client, request) of every request.
        signed: the credentials of each request.
    """

    def __init__(self, server: Server) -> None:
        self.failing = False
        self.passed: list[tuple[str, str]] = []
        self.signed: list[str] = []
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                gate._pass(self, server)

            do_POST = do_PATCH = do_PUT = do_GET

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _pass(self, handler: BaseHTTPRequestHandler, server: Server) -> None:
        what = urlsplit(handler.path).path.partition("/mlflow/")[2]
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.passed.append((handler.headers.get("User-Agent", "").partition("/")[0], what))
        self.signed.append(
            b64decode(handler.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        )
        status, content, kind = 503, b"not now", "text/plain"
        if not (self.failing and what == "runs/log-batch"):
            line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            headers = {name: handler.headers[name] for name in _KEPT if name in handler.headers}
            line.request(handler.command, handler.path, body, headers)
            there = line.getresponse()
            status, content, kind = there.status, there.read(), there.headers.get("Content-Type", "")
            line.close()
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
