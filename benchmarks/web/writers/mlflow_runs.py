"""Write runs with MLflow: `mlflow_runs.py RUNS`, to `MLFLOW_TRACKING_URI`. Prints `EXPERIMENT RUN` of one."""

import sys
import time

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient
from values import PROJECT, config_of, rows_of

client = MlflowClient()
experiment = client.create_experiment(PROJECT)
for number in range(int(sys.argv[1])):
    run = client.create_run(experiment, run_name=f"run{number:03}")
    params = [Param(name, str(value)) for name, value in config_of(number).items()]
    now = time.time_ns() // 1_000_000
    metrics = [
        Metric(name, value, now + step, step)
        for step, row in enumerate(rows_of(number))
        for name, value in row.items()
    ]
    client.log_batch(run.info.run_id, params=params)
    for first in range(0, len(metrics), 1000):
        client.log_batch(run.info.run_id, metrics=metrics[first : first + 1000])
    client.set_terminated(run.info.run_id)
print(experiment, run.info.run_id)
