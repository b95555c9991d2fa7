"""A training script that starts MLflow runs in all supported ways, and prints a report as JSON."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from typing import Any

import mlflow
import mlflow.sklearn
import requests
from sklearn.linear_model import LinearRegression

import runvitals
import runvitals.mlflow as ours

NAP_S = 0.45
reported: dict[str, Any] = {}
asked: Counter[str] = Counter()
_send = requests.Session.send


def count(session: requests.Session, request: Any, **options: Any) -> Any:
    asked[request.url.rpartition("mlflow/")[2].partition("?")[0]] += 1
    return _send(session, request, **options)


def run(name: str, nap_s: float = NAP_S, **options: Any) -> str:
    """A run that is idle for a while."""
    asked.clear()
    with mlflow.start_run(**options) as begun:
        reported.setdefault("threads", []).append(threading.active_count())
        time.sleep(nap_s)
    reported[name] = begun.info.run_id
    reported[f"{name} asked for"] = dict(asked)
    return str(begun.info.run_id)


def refused(call: Any, *values: Any) -> list[str]:
    """The errors of a call for invalid values."""
    messages = []
    for value in values:
        try:
            call(value)
        except ValueError as error:
            messages.append(str(error))
    return messages


def ranks(run_id: str) -> None:
    """Two processes that join a run as different nodes."""
    children = []
    for number in range(2):
        pid = os.fork()
        if not pid:
            ours.set_system_metrics_node_id(f"node-{number}")
            with mlflow.start_run(run_id=run_id):
                time.sleep(NAP_S)
            os._exit(0)
        children.append(pid)
    reported["ranks ended with"] = [os.waitpid(pid, 0)[1] for pid in children]


requests.Session.send = count  # type: ignore[method-assign]
ours.set_system_metrics_sampling_interval(0.1)
run("nothing said")

ours.enable_system_metrics_logging()
first = run("enabled")
run("enabled, but not for this one", log_system_metrics=False)
run("shorter than a sample", nap_s=0.0)
run("again", run_id=first)

with mlflow.start_run() as parent:
    run("nested", nested=True)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(NAP_S)
reported["parent"] = parent.info.run_id

ours.set_system_metrics_samples_before_logging(2)
run("two samples a point")
ours.set_system_metrics_samples_before_logging(None)

joined = mlflow.MlflowClient().create_run("0").info.run_id
reported["ranks"] = joined
ranks(joined)

ours.disable_system_metrics_logging()
run("disabled")
run("disabled, but for this one", log_system_metrics=True)
with ours.start_run(log_system_metrics=True) as begun:
    pass
reported["by our start_run"] = begun.info.run_id

os.environ["MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"] = "true"
run("by the environment")
os.environ["MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL"] = "often"
run("with a word for an interval")
os.environ["MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"] = "yes"
reported["yes"] = refused(lambda value: ours.start_run(), None)
reported["intervals"] = refused(
    ours.set_system_metrics_sampling_interval, -1, "abc", float("nan"), float("inf")
)
reported["samples"] = refused(ours.set_system_metrics_samples_before_logging, -1, 2.5, "x")
reported["nodes"] = refused(ours.set_system_metrics_node_id, "bad#id", "a//b", "../x", "x" * 200)
reported["set"] = os.environ["MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL"]

assert runvitals.mlflow is ours
ours.set_system_metrics_sampling_interval(0.1)
ours.enable_system_metrics_logging()
mlflow.sklearn.autolog(log_models=False, log_datasets=False, silent=True)
LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
mlflow.sklearn.autolog(disable=True)
reported["autolog"] = mlflow.last_active_run().info.run_id

left = mlflow.start_run()  # and never ended: MLflow does so when the interpreter ends
reported["left open"] = left.info.run_id
time.sleep(NAP_S)
print("STORY", json.dumps(reported), flush=True)
