"""MLflow's store behind a tracking server, read by its REST API."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from runvitals.readers.importers.json_api import ApiError, JsonApi
from runvitals.readers.importers.mlflow.run import MlflowArtifact, MlflowMetric, MlflowStoreRun
from runvitals.readers.importers.shapes import mapping, mappings
from runvitals.relay.destinations.mlflow.rest_store import authorization, tls

_API = "/api/2.0/mlflow"
_PAGE_RUNS = 100
_PAGE_VALUES = 25_000
_MAX_FOLDERS = 10_000
_PROXIED = "mlflow-artifacts"


class MlflowServerStore:
    """See `MlflowStore`.

    Args:
        uri: `http://host[:port][/path]` or https, without a password.
        environ: MLflow's variables for credentials and TLS.
        sleep: waits so many seconds.

    Raises:
        ValueError: invalid URI.
    """

    def __init__(
        self, uri: str, environ: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        context = tls(environ) if uri.startswith("https:") else None
        self._api = JsonApi(uri, authorization(uri, environ), context, sleep)
        self._keys: dict[str, list[str]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="runvitals-import-")
        self.total = self.deleted = self.unreadable = 0
        self.damaged: dict[str, str] = {}

    def runs(self) -> Iterator[MlflowStoreRun]:
        """Yield the runs that are not deleted, and of experiments that are not."""
        for experiment in self._pages("experiments/search", "experiments", {"max_results": 1000}):
            query = {"experiment_ids": [_text(experiment, "experiment_id")], "max_results": _PAGE_RUNS}
            for run in self._pages("runs/search", "runs", {**query, "run_view_type": "ALL"}):
                info, data = mapping(run.get("info")), mapping(run.get("data"))
                if info.get("lifecycle_stage") == "deleted":
                    self.deleted += 1
                    continue
                run_id = _text(info, "run_id")
                self._keys[run_id] = [_text(metric, "key") for metric in mappings(data.get("metrics"))]
                yield _run(info, data, _text(experiment, "name"))

    def metrics(self, run: MlflowStoreRun) -> Iterator[MlflowMetric]:
        """Yield the values of all metrics of a run."""
        for key in self._keys.get(run.id, ()):
            token = None
            while True:
                query = {
                    "run_id": run.id,
                    "metric_key": key,
                    "max_results": _PAGE_VALUES,
                    "page_token": token,
                }
                page = self._api.get(f"{_API}/metrics/get-history", query)
                for each in mappings(page.get("metrics")):
                    metric = _metric(key, each)
                    if metric is None:
                        self.unreadable += 1
                    else:
                        yield metric
                token = page.get("next_page_token")
                if not token:
                    break

    def artifacts(self, run: MlflowStoreRun) -> Iterator[MlflowArtifact]:
        """Yield the files of a run.

        Raises:
            ValueError: the server does not list them.
        """
        pending = [""]
        folders = 0
        while pending and folders < _MAX_FOLDERS:
            folder = pending.pop()
            folders += 1
            token = None
            while True:
                query = {"run_id": run.id, "path": folder or None, "page_token": token}
                page = self._api.get(f"{_API}/artifacts/list", query)
                for each in mappings(page.get("files")):
                    name = _text(each, "path")
                    if each.get("is_dir"):
                        pending.append(name)
                    else:
                        yield MlflowArtifact(name, partial(self._download, run, name))
                token = page.get("next_page_token")
                if not token:
                    break

    def close(self) -> None:
        """Close the connection, and delete what was downloaded."""
        self._api.close()
        self._folder.cleanup()

    def _download(self, run: MlflowStoreRun, name: str) -> str | None:
        """Return a copy of a file, which the next one replaces; None if the server does not send it."""
        parts = urlsplit(run.artifact_uri)
        if parts.scheme == _PROXIED:
            path = f"/api/2.0/mlflow-artifacts/artifacts{quote(f'{parts.path}/{name}')}"
        else:
            path = f"/get-artifact?run_uuid={quote(run.id)}&path={quote(name, safe='')}"
        try:
            content = self._api.content(path)
        except ApiError:
            return None
        if content is None:
            return None
        copy = os.path.join(self._folder.name, "artifact")
        with open(copy, "wb") as file:
            file.write(content)
        return copy

    def _pages(self, path: str, field: str, query: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        token = None
        while True:
            body = {**query, **({"page_token": token} if token else {})}
            page = self._api.post(f"{_API}/{path}", body)
            yield from mappings(page.get(field))
            token = page.get("next_page_token")
            if not token:
                return


def _run(info: Mapping[str, Any], data: Mapping[str, Any], experiment: str) -> MlflowStoreRun:
    tags = _pairs(data.get("tags"))
    return MlflowStoreRun(
        id=_text(info, "run_id"),
        experiment=experiment,
        name=str(info.get("run_name") or tags.get("mlflow.runName", "")),
        status=str(info.get("status", "")),
        started_ms=_time_ms(info.get("start_time")) or 0,
        ended_ms=_time_ms(info.get("end_time")),
        params=_pairs(data.get("params")),
        tags=tags,
        artifact_uri=str(info.get("artifact_uri") or ""),
    )


def _pairs(value: object) -> dict[str, str]:
    return {_text(pair, "key"): str(pair.get("value", "")) for pair in mappings(value)}


def _text(answer: Mapping[str, Any], name: str) -> str:
    """Return a field of an answer that must be there, or raise ApiError."""
    value = answer.get(name)
    if not isinstance(value, (str, int)):
        raise ApiError(f"the server's answer has no {name} where MLflow's has one: {str(answer)[:200]}", 200)
    return str(value)


def _time_ms(value: object) -> int | None:
    """Return a time, which some versions send as a text; None if there is none."""
    try:
        return int(value) if isinstance(value, (int, float, str)) and value else None
    except (ValueError, OverflowError):
        return None


def _metric(key: str, value: Mapping[str, Any]) -> MlflowMetric | None:
    """Return a value of a metric; None if it is not a number."""
    try:
        return MlflowMetric(key, float(value["value"]), int(value["timestamp"]), int(value.get("step", 0)))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
