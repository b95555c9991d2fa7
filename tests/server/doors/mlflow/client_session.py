"""A training with MLflow's client, from 2.8 on: run by `test_client` in a process of its own.

Prints one JSON object about what the client then reads.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import mlflow
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient


def main(name: str) -> dict[str, Any]:
    """One session under an experiment of this name."""
    client = MlflowClient()
    experiment = mlflow.set_experiment(name)
    seen: dict[str, Any] = {"again": mlflow.set_experiment(name).experiment_id == experiment.experiment_id}
    with mlflow.start_run(run_name="first", tags={"team": "vision"}, description="a note") as active:
        run_id = active.info.run_id
        mlflow.log_param("lr", 0.001)
        mlflow.log_params({"depth": 50, "net/kind": "resnet", "empty": "", "on": True})
        for step in range(20):
            mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
        mlflow.log_metrics({"acc": 0.5, "nan": math.nan, "inf": math.inf}, step=3)
        mlflow.set_tags({"a": "1", "b": "2"})
        mlflow.delete_tag("b")
        now = int(time.time() * 1000)
        client.log_batch(
            run_id,
            metrics=[Metric("many", float(number), now, number) for number in range(1000)],
            params=[Param("batch", "yes")],
            tags=[RunTag("batched", "yes")],
        )
        try:
            client.log_param(run_id, "batch", "no")
        except MlflowException as error:
            seen["param_error"] = error.error_code
    run = client.get_run(run_id)
    seen["status"], seen["name"] = run.info.status, run.info.run_name
    seen["ended"] = run.info.end_time >= run.info.start_time
    seen["params"] = run.data.params
    seen["tags"] = {
        key: value for key, value in run.data.tags.items() if key in ("team", "a", "b", "batched")
    }
    seen["note"] = run.data.tags["mlflow.note.content"]
    metrics = run.data.metrics
    seen["metrics"] = [metrics["loss"], metrics["acc"], math.isnan(metrics["nan"]), metrics["inf"] > 1e308]
    seen["steps"] = [metric.step for metric in client.get_metric_history(run_id, "loss")]
    seen["many"] = [metric.value for metric in client.get_metric_history(run_id, "many")] == [
        float(number) for number in range(1000)
    ]
    with mlflow.start_run(run_id=run_id):  # resumed
        seen["resumed"] = client.get_run(run_id).info.status
        mlflow.log_metric("loss", 0.01, step=20)
    try:
        with mlflow.start_run(run_name="second", nested=False) as failed:
            raise ZeroDivisionError
    except ZeroDivisionError:
        seen["failed"] = client.get_run(failed.info.run_id).info.status
    ids = [experiment.experiment_id]
    runs = client.search_runs(ids, "metrics.loss < 0.02 and params.`net/kind` = 'resnet'")
    seen["found"] = [one.info.run_name for one in runs]
    seen["order"] = [one.info.run_name for one in client.search_runs(ids, order_by=["start_time ASC"])]
    page = client.search_runs(ids, max_results=1)
    seen["pages"] = [len(page), len(client.search_runs(ids, max_results=1, page_token=page.token))]
    client.delete_run(failed.info.run_id)
    seen["deleted"] = [one.info.run_name for one in client.search_runs(ids, "", ViewType.DELETED_ONLY)]
    client.restore_run(failed.info.run_id)
    client.set_experiment_tag(experiment.experiment_id, "owner", "ada")
    seen["experiments"] = [
        (one.name == name, one.tags.get("owner"))
        for one in client.search_experiments(filter_string="tags.owner = 'ada'")
        if one.name == name
    ]
    client.rename_experiment(experiment.experiment_id, f"{name}-renamed")
    seen["renamed"] = client.get_experiment(experiment.experiment_id).name
    client.delete_experiment(experiment.experiment_id)
    seen["stage"] = client.get_experiment(experiment.experiment_id).lifecycle_stage
    client.restore_experiment(experiment.experiment_id)
    try:
        client.search_runs(ids, "metrics.loss ~ 3")
    except MlflowException as error:
        seen["filter_error"] = error.error_code
    seen["run"] = run_id
    return seen


def system_metrics(name: str) -> dict[str, Any]:
    """A run with the client's own system metrics, from 2.9 on."""
    mlflow.set_experiment(name)
    mlflow.set_system_metrics_sampling_interval(0.05)
    with mlflow.start_run(log_system_metrics=True) as active:
        client = MlflowClient()
        while not client.get_metric_history(active.info.run_id, "system/cpu_utilization_percentage"):
            time.sleep(0.05)
    keys = sorted(client.get_run(active.info.run_id).data.metrics)
    history = client.get_metric_history(active.info.run_id, "system/cpu_utilization_percentage")
    return {"run": active.info.run_id, "keys": keys, "steps": [metric.step for metric in history]}


if __name__ == "__main__":
    found = {"session": main(sys.argv[1])}
    if "system" in sys.argv[2:]:
        found["system"] = system_metrics(f"{sys.argv[1]}-system")
    print(json.dumps(found))
