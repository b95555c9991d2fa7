"""A training with wandb, of any version from 0.16 on: the benchmark runs it with each version.

python wandb_session.py ROWS

Prints one JSON object: what `wandb.Api()` then reads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from glob import glob
from typing import Any

import wandb

PROJECT = "clients"


def logged(count: int, factor: float = 1.0, **how: Any) -> Any:
    """A run with rows of ten metrics."""
    run = wandb.init(project=PROJECT, **how)
    for number in range(count):
        run.log({f"metric_{index}": factor * (number + index) for index in range(10)})
    run.finish()
    return run


def read(run: str) -> dict[str, Any]:
    """Return the number of a run's rows, whether their steps ascend, and its state."""
    remote_run = wandb.Api(timeout=120).run(f"{PROJECT}/{run}")
    steps = [row["_step"] for row in remote_run.scan_history(keys=["_step", "metric_0"])]
    return {"rows": len(steps), "ordered": steps == sorted(set(steps)), "state": remote_run.state}


def offline(count: int) -> None:
    """A run that is logged without a server and sent twice."""
    logged(count, id="offline", mode="offline")
    for _ in range(2):
        for mark in glob("wandb/offline-run-*/*.synced"):
            os.unlink(mark)
        subprocess.run(
            [sys.executable, "-m", "wandb", "sync", *glob("wandb/offline-run-*")], check=True, stdout=2
        )


def artifact() -> str:
    """The text of a file that went through an artifact."""
    run = wandb.init(project=PROJECT, id="artifact")
    draft = wandb.Artifact("kept", "dataset")
    with draft.new_file("text.txt") as file:
        file.write("kept")
    run.log({"table": wandb.Table(columns=["a"], data=[[1]])})
    run.log_artifact(draft)
    draft.wait()
    folder = run.use_artifact("kept:latest").download()
    run.finish()
    with open(os.path.join(folder, "text.txt"), encoding="utf-8") as file:
        return file.read()


def main(rows: int) -> dict[str, Any]:
    result: dict[str, Any] = {"version": wandb.__version__}
    logged(rows, id="large")
    result["large"] = read("large")
    logged(5, id="again")
    logged(3, factor=10.0, id="again")
    result["begun again"] = read("again")
    logged(2, id="again", resume="must")
    result["resumed"] = read("again")
    offline(50)
    result["sent twice"] = read("offline")
    result["artifact"] = artifact()
    return result


if __name__ == "__main__":
    os.environ["WANDB_SILENT"] = "true"
    print(json.dumps(main(int(sys.argv[1]))))
