"""A W&B server as far as clients need one: the run, and the lines of its files, written at their numbers."""

from __future__ import annotations

import gzip
import json
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

KEY = "k" * 40


class Files:
    """The files of a run there.

    Attributes:
        lines: by file, by number.
        exit_code: None while it goes on.
        variables: of the last call that made or changed the run, merged.
    """

    def __init__(self) -> None:
        self.lines: dict[str, dict[int, str]] = {}
        self.exit_code: int | None = None
        self.variables: dict[str, Any] = {}
        self.clients: set[str] = set()

    def read(self, name: str) -> list[Any]:
        lines = self.lines.get(name, {})
        assert sorted(lines) == list(range(len(lines))), f"{name} has gaps: {sorted(lines)}"
        content = [lines[number] for number in range(len(lines))]
        return content if name == "output.log" else [json.loads(line) for line in content]


class WandbServer(ThreadingHTTPServer):
    """On loopback, at `url`. `faults`: statuses that the next requests get. `stop`: asks clients to end."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.runs: dict[str, Files] = {}
        self.faults: list[int] = []
        self.stop = False
        self.requests = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def run(self, run_id: str) -> Files:
        return self.runs.setdefault(run_id, Files())


class _Handler(BaseHTTPRequestHandler):
    server: WandbServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._answer(404, {})

    def do_PUT(self) -> None:
        self._body()
        self._answer(200, {})

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        with self.server.lock:
            self.server.requests += 1
            if self.server.faults:
                self._answer(self.server.faults.pop(0), {"error": "as the test wants it"})
                return
            scheme, _, secret = self.headers.get("Authorization", "").partition(" ")
            if scheme != "Basic" or b64decode(secret) != f"api:{KEY}".encode():
                self._answer(401, {"error": "no such key"})
            elif self.path == "/graphql":
                self._answer(200, self._graphql(body))
            else:
                self._answer(200, self._stream(body))

    def _graphql(self, body: dict[str, Any]) -> dict[str, Any]:
        variables = body.get("variables") or {}
        if "upsertBucket" not in body.get("query", ""):
            return {"data": None, "errors": [{"message": "not here"}]}
        if variables.get("project") == "forbidden":
            return {"errors": [{"message": "permission denied"}]}
        run = variables["name"]
        files = self.server.run(run)
        files.variables.update({key: value for key, value in variables.items() if value is not None})
        project = {"id": "p", "name": files.variables["project"], "entity": {"id": "e", "name": "me"}}
        bucket = {"id": run, "name": run, "displayName": run, "description": None, "config": None,
                  "sweepName": None, "historyLineCount": 0, "project": project}  # fmt: skip
        return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}

    def _stream(self, body: dict[str, Any]) -> dict[str, Any]:
        _, kind, _entity, _project, run, what = unquote(self.path).split("/")
        assert (kind, what) == ("files", "file_stream")
        files = self.server.run(run)
        files.clients.add(self.headers.get("X-Wandb-Async-Client-Id", ""))
        for name, part in (body.get("files") or {}).items():
            for number, line in enumerate(part["content"], part["offset"]):
                files.lines.setdefault(name, {})[number] = line
        if body.get("complete"):
            files.exit_code = body["exitcode"]
        return {"stopped": True} if self.server.stop else {}

    def _body(self) -> bytes:
        data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
