"""Logs, resumes, edits and finds runs by their summaries, and prints what `wandb.Api()` then reads.

python summary_client.py PROJECT
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import wandb

_INTERVAL_S = 0.2
FILTERS: dict[str, dict[str, Any]] = {
    "form": {"summary_metrics.acc.max": {"$gt": 2}},
    "name": {"summary_metrics.acc": 3},
    "nested": {"summary_metrics.d.x": 1},
    "deleted": {"summary_metrics.post": {"$exists": True}},
}


def begin(project: str, **how: Any) -> Any:
    settings = wandb.Settings(x_file_stream_transmit_interval=_INTERVAL_S, x_disable_stats=True, silent=True)
    return wandb.init(project=project, id="forms", settings=settings, **how)


def read(project: str) -> dict[str, Any]:
    """The summary, as another program reads it."""
    summary = wandb.Api().run(f"{project}/forms").summary._json_dict
    return {key: value for key, value in summary.items() if key not in ("_runtime", "_timestamp", "_wandb")}


def defined(run: Any) -> Any:
    run.define_metric("acc", summary="max")
    run.define_metric("x", summary="last,min,max")
    run.define_metric("none", summary="none")
    return run


def main(project: str) -> dict[str, Any]:
    results: dict[str, Any] = {}
    run = defined(begin(project))
    for value in (1, 3, 2):
        run.log(
            {"acc": value, "x": value, "none": value, "post": value, "net": {"a": value, "b": {"c": value}}}
        )
    run.summary["d"] = {"x": 1}
    run.summary["empty"] = {}
    run.summary["list"] = [1, {"a": 2}]
    run.summary["inf"] = float("inf")
    run.summary["dotted.name"] = 1
    run.summary["gone"] = 1
    time.sleep(3 * _INTERVAL_S)  # so that most of it is sent before something is deleted
    del run.summary["post"]
    del run.summary["gone"]
    run.finish()
    results["first"] = read(project)
    results["filters"] = [len(wandb.Api().runs(project, filters=each)) for each in FILTERS.values()]

    run = begin(project, resume="must")
    results["resumed"] = json.loads(json.dumps({key: run.summary[key] for key in ("acc", "d")}, default=dict))
    defined(run).log({"x": 0})
    run.finish()
    results["second"] = read(project)

    edited = wandb.Api().run(f"{project}/forms")
    edited.summary["new"] = {"k": {"m": 1}}
    edited.summary["d"]["x"] = 7
    del edited.summary["list"]
    edited.summary.update()
    results["edited"] = read(project)
    edited = wandb.Api().run(f"{project}/forms")
    edited.summary["new"]["k"]["m"] = 2
    edited.summary.update()
    results["edited again"] = read(project)
    return results


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
