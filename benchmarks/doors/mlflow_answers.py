"""Compares the answers of MLflow's own server and of ours to the same session of MLflow's client.

    python -m benchmarks.doors.mlflow_answers

Both servers run on loopback, MLflow's over SQLite; it is started from the package that is installed, which
needs Flask, SQLAlchemy and Alembic. Ids and times are made equal before answers are compared. Prints the
first difference of each endpoint, and at the end how many answers were compared and how many differ.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROUNDS: Final = 6
_WAIT_S: Final = 120
_TIMES: Final = re.compile(r"(?:time|timestamp|creation_timestamp_ms|last_updated_timestamp_ms)$")
_IDS: Final = re.compile(r"\b(?:m-)?[0-9a-f]{32}\b")
_PATHS: Final = re.compile(r"(?<=/)[0-9]+(?=/)")
_IGNORED: Final = frozenset(("user_id", "workspace", "sqlstate", "error_class", "experiment_id"))

_SERVER: Final = """
from werkzeug.serving import make_server
from mlflow.server import app
server = make_server("127.0.0.1", 0, app)
print(server.server_port, flush=True)
server.serve_forever()
"""

_SESSION: Final = r"""
import json, os, sys
import requests
from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelInput, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

send = requests.Session.send
def recorded(session, request, **how):
    response = send(session, request, **how)
    path = request.path_url.partition("?")[0]
    try:
        body = response.json()
    except ValueError:
        body = {"bytes": len(response.content)}
    print(json.dumps([request.method, path, response.status_code, body]), flush=True)
    return response
requests.Session.send = recorded

url, rounds = sys.argv[1], int(sys.argv[2])
client = MlflowClient(url, url)

def attempt(call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except MlflowException:
        return None

for number in range(rounds):
    name = f"net-{number}"
    experiment = client.create_experiment(f"digits-{number}", tags={"team": "vision"})
    attempt(client.create_experiment, f"digits-{number}")
    client.set_experiment_tag(experiment, "a", "b")
    client.get_experiment(experiment)
    attempt(client.get_experiment, "99999")
    attempt(client.get_experiment_by_name, "none")
    client.search_experiments(filter_string=f"name = 'digits-{number}'")
    run = client.create_run(experiment, run_name=f"r{number}", tags={"x": "1"}, start_time=1_700_000_000_000)
    uid = run.info.run_id
    metrics = [Metric("loss", 1 / (step + 1), 1_700_000_000_000 + step, step) for step in range(20)]
    client.log_batch(uid, metrics, [Param("lr", "0.1"), Param("name", "a b")], [RunTag("t", "u")])
    client.log_metric(uid, "acc", 0.5, 1_700_000_001_000, 3)
    client.log_param(uid, "layers", 3)
    attempt(client.log_param, uid, "layers", 4)
    attempt(client.log_param, uid, "bad#key", 4)
    client.set_tag(uid, "k", "v")
    client.delete_tag(uid, "k")
    attempt(client.delete_tag, uid, "none")
    client.get_metric_history(uid, "loss")
    client.get_run(uid)
    attempt(client.get_run, "0" * 32)
    for text in ("metrics.loss < 0.5", "params.lr = '0.1' AND tags.x = '1'", "attributes.status = 'RUNNING'"):
        client.search_runs([experiment], text)
    attempt(client.search_runs, [experiment], "metrics.loss <> 1")
    dataset = Dataset("mnist", "abc", "local", "{}")
    client.log_inputs(uid, [DatasetInput(dataset, [InputTag("mlflow.data.context", "train")])])
    model = client.create_logged_model(
        experiment, "net", source_run_id=uid, params={"a": "1"}, tags={"b": "2"}
    )
    client.log_inputs(uid, models=[LoggedModelInput(model.model_id)])
    client.finalize_logged_model(model.model_id, "READY")
    client.set_logged_model_tags(model.model_id, {"c": "3"})
    client.delete_logged_model_tag(model.model_id, "b")
    attempt(client.delete_logged_model_tag, model.model_id, "none")
    client.get_logged_model(model.model_id)
    client.search_logged_models([experiment])
    attempt(client.get_logged_model, "m-" + "0" * 32)
    client.log_text(uid, "hello", "sub/note.txt")
    client.list_artifacts(uid)
    client.list_artifacts(uid, "sub")
    client.get_run(uid)
    client.create_registered_model(name, {"team": "vision"}, "words")
    attempt(client.create_registered_model, name)
    attempt(client.create_registered_model, "a/b")
    client.update_registered_model(name, "other words")
    client.set_registered_model_tag(name, "a", "b")
    client.delete_registered_model_tag(name, "a")
    source = f"models:/{model.model_id}"
    client.create_model_version(name, source, uid, {"a": "b"}, model_id=model.model_id)
    client.create_model_version(name, f"models:/{name}/1", description="second")
    client.update_model_version(name, "1", "first")
    client.transition_model_version_stage(name, "1", "Staging")
    client.transition_model_version_stage(name, "2", "Staging", archive_existing_versions=True)
    attempt(client.transition_model_version_stage, name, "1", "nowhere")
    client.get_latest_versions(name)
    client.set_model_version_tag(name, "1", "k", "v")
    client.delete_model_version_tag(name, "1", "k")
    client.set_registered_model_alias(name, "champion", "1")
    attempt(client.set_registered_model_alias, name, "v1", "1")
    attempt(client.set_registered_model_alias, name, "other", "9")
    client.get_model_version_by_alias(name, "champion")
    attempt(client.get_model_version_by_alias, name, "none")
    client.get_registered_model(name)
    client.search_registered_models(f"name = '{name}'")
    client.search_model_versions(f"name = '{name}'", order_by=["version_number ASC"])
    client.get_model_version_download_uri(name, "2")
    client.delete_model_version(name, "1")
    attempt(client.get_model_version, name, "1")
    client.rename_registered_model(name, f"renamed-{number}")
    client.delete_registered_model(f"renamed-{number}")
    attempt(client.get_registered_model, name)
    client.set_terminated(uid, "FINISHED", 1_700_000_005_000)
    client.delete_run(uid)
    client.restore_run(uid)
    client.delete_experiment(experiment)
    client.restore_experiment(experiment)
"""


@contextmanager
def _mlflow_server(folder: Path) -> Iterator[str]:
    environ = {
        **os.environ,
        "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{folder / 'mlflow.db'}",
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": str(folder / "artifacts"),
    }
    command = [sys.executable, "-W", "ignore", "-c", _SERVER]
    with (folder / "mlflow.log").open("w") as log:
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()
            process.wait(_WAIT_S)


def _answers(url: str, folder: Path, rounds: int) -> list[list[Any]]:
    """Return a server's responses to the session: method, path, status and body of each request."""
    environ = {**os.environ, "MLFLOW_TRACKING_URI": url, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    command = [sys.executable, "-W", "ignore", "-c", _SESSION, url, str(rounds)]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"the session with {url} ended early: {done.stderr.strip().splitlines()[-1][:300]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def _normalised(value: Any, key: str = "") -> Any:
    """A value without what differs between any two servers. Empty values are as if they were not sent."""
    if isinstance(value, dict):
        normalised = {
            name: _normalised(each, name) for name, each in sorted(value.items()) if name not in _IGNORED
        }
        return {name: each for name, each in normalised.items() if each not in ("", [], {}, None, False)}
    if isinstance(value, list):
        return sorted((_normalised(each) for each in value), key=json.dumps)
    if _TIMES.search(key):
        return "TIME"
    if isinstance(value, str):
        return _PATHS.sub("N", _IDS.sub("ID", value))
    return value


def compare(theirs: list[list[Any]], ours: list[list[Any]]) -> int:
    """Print what differs; returns how many answers do. Messages of errors are not compared."""
    seen: set[str] = set()
    differing = abs(len(theirs) - len(ours))
    for expected, actual in zip(theirs, ours, strict=False):
        mlflow_answer, got = (
            _normalised({"status": exchange[2], "body": exchange[3]}) for exchange in (expected, actual)
        )
        for body in (mlflow_answer.get("body"), got.get("body")):
            if isinstance(body, dict) and "error_code" in body:
                body.pop("message", None)
        if mlflow_answer == got:
            continue
        differing += 1
        name = f"{expected[0]} {_PATHS.sub('N', _IDS.sub('ID', expected[1]))}"
        text = f"{name}\n  MLflow: {json.dumps(mlflow_answer)[:1500]}\n  ours:   {json.dumps(got)[:1500]}"
        if name not in seen:
            seen.add(name)
            print(text)
    return differing


def main() -> None:
    from tests.server.serving import serving

    os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _mlflow_server(folder) as url:
            theirs = _answers(url, folder, ROUNDS)
        with serving(folder) as served:
            ours = _answers(served.url, folder, ROUNDS)
    differing = compare(theirs, ours)
    print(f"{len(theirs)} answers of MLflow's server, {len(ours)} of ours; {differing} differ")


if __name__ == "__main__":
    main()
