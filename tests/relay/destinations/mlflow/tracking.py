"""A tracking server in memory: the part of MLflow's REST API that the relay uses, with faults on demand."""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

API = "/api/2.0/mlflow/"
MISSING, INVALID, EXISTS = "RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "RESOURCE_ALREADY_EXISTS"
_HTTP = {MISSING: 404, INVALID: 400, EXISTS: 400}


class ErrorResponse(Exception):
    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(text)
        self.code = code


class Tracking:
    """A tracking server.

    Attributes:
        requests: (path without the prefix, body or query) of every request.
        headers: those of the last request.
        faults: responses to the next requests to `log-batch`, (status, Retry-After). With 599 the request is
            processed, and its response is lost.
        rejected: names of metrics that are rejected.
        deleted: names of deleted experiments.
        hidden: names of experiments that another client is creating: they appear after an attempt to create
            them.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: dict[str, str] = {}
        self.faults: deque[tuple[int, str]] = deque()
        self.rejected: set[str] = set()
        self.deleted: set[str] = set()
        self.hidden: set[str] = set()
        self.experiments: dict[str, str] = {"Default": "0"}
        self.runs: dict[str, dict[str, Any]] = {}
        tracking = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                tracking._answer(self)

            do_POST = do_GET

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def begin(self, run: str, **info: Any) -> None:
        """Have a run there."""
        self.runs[run] = {"status": "RUNNING", "metrics": [], "params": {}, "tags": {}, **info}

    def asked(self, what: str) -> list[dict[str, Any]]:
        """The bodies of all requests to one endpoint."""
        return [body for path, body in self.requests if path == what]

    def points(self, run: str, key: str) -> list[tuple[int, Any]]:
        """(step, value) of a metric in the order they came; a point that came twice counts once."""
        metrics = self.runs[run]["metrics"]
        return list(
            dict.fromkeys((metric["step"], metric["value"]) for metric in metrics if metric["key"] == key)
        )

    def keys(self, run: str) -> set[str]:
        return {metric["key"] for metric in self.runs[run]["metrics"]}

    # -- HTTP

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        sent = json.loads(handler.rfile.read(length)) if length else {}
        body = sent or {name: texts[0] for name, texts in parse_qs(parts.query).items()}
        path = parts.path.partition(API)[2]
        self.headers = dict(handler.headers.items())
        fault = self.faults.popleft() if self.faults and path == "runs/log-batch" else (0, "")
        if fault[0] not in (0, 599):
            self._say(handler, fault[0], b"<html>away</html>", fault[1])
            return
        self.requests.append((path, body))
        try:
            response = getattr(self, "_" + path.replace("/", "_").replace("-", "_"))(body)
        except ErrorResponse as error:
            problem = {"error_code": error.code, "message": str(error)}
            self._say(handler, _HTTP[error.code], json.dumps(problem).encode())
            return
        if fault[0] == 599:
            handler.close_connection = True
            return
        self._say(handler, 200, json.dumps(response).encode())

    def _say(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, after: str = "") -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        if after:
            handler.send_header("Retry-After", after)
        handler.end_headers()
        handler.wfile.write(body)

    # -- endpoints

    def _run(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["run_id"] not in self.runs:
            raise ErrorResponse(MISSING, f"Run with id={body['run_id']} not found")
        return self.runs[body["run_id"]]

    def _experiments_get_by_name(self, body: dict[str, Any]) -> dict[str, Any]:
        name = body["experiment_name"]
        if name in self.deleted:
            return {"experiment": {"experiment_id": "9", "lifecycle_stage": "deleted"}}
        if name not in self.experiments:
            raise ErrorResponse(MISSING, f"Could not find experiment with name '{name}'")
        return {"experiment": {"experiment_id": self.experiments[name], "lifecycle_stage": "active"}}

    def _experiments_create(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["name"] in self.deleted:
            raise ErrorResponse(EXISTS, "exists, and is deleted")
        self.experiments[body["name"]] = str(len(self.experiments))
        if body["name"] in self.hidden:
            raise ErrorResponse(EXISTS, "exists")
        return {"experiment_id": self.experiments[body["name"]]}

    def _runs_create(self, body: dict[str, Any]) -> dict[str, Any]:
        run = f"{len(self.runs):032x}"
        tags = {tag["key"]: tag["value"] for tag in body["tags"]}
        self.begin(run, tags=tags, name=body["run_name"], experiment=body["experiment_id"])
        return {"run": {"info": {"run_id": run}}}

    def _runs_delete(self, body: dict[str, Any]) -> dict[str, Any]:
        del self.runs[body["run_id"]]
        return {}

    def _runs_search(self, body: dict[str, Any]) -> dict[str, Any]:
        key, value = body["filter"].removeprefix("tags.`").removesuffix("'").split("` = '")
        matching = [run for run, record in self.runs.items() if record["tags"].get(key) == value]
        return {"runs": [{"info": {"run_id": run}} for run in matching]}

    def _runs_get(self, body: dict[str, Any]) -> dict[str, Any]:
        run = self._run(body)
        return {"run": {"info": {"status": run["status"]}, "data": {"metrics": run["metrics"]}}}

    def _runs_update(self, body: dict[str, Any]) -> dict[str, Any]:
        self._run(body)["status"] = body["status"]
        return {"run_info": {}}

    def _runs_log_batch(self, body: dict[str, Any]) -> dict[str, Any]:
        run = self._run(body)
        metrics = body.get("metrics", [])
        assert len(metrics) <= 1000
        assert len(body.get("params", [])) <= 100
        if any(metric["key"] in self.rejected for metric in metrics):
            raise ErrorResponse(INVALID, "Invalid metric name")
        run["metrics"] += metrics
        run["params"].update({param["key"]: param["value"] for param in body.get("params", [])})
        run["tags"].update({tag["key"]: tag["value"] for tag in body.get("tags", [])})
        return {}
