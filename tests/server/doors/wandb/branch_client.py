"""Runs that fork others and go back: run as a program with the installed client, by the tests.

python branch_client.py RESULT.json PREFIX
"""

from __future__ import annotations

import json
import os
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import wandb

PATH = "main/digits"


def history(name: str) -> list[tuple[int, float]]:
    """The steps and losses of a run, as `wandb.Api()` reads them."""
    run = wandb.Api().run(f"{PATH}/{name}")
    return [(row["_step"], row["loss"]) for row in run.scan_history(keys=["_step", "loss"])]


def logged(count: int, factor: float, **how: Any) -> Any:
    run = wandb.init(project="digits", entity="main", **how)
    for number in range(1, count + 1):
        run.log({"loss": factor * number})
    run.finish()
    return run


def main(prefix: str) -> dict[str, Any]:
    parent, child = f"{prefix}-parent", f"{prefix}-child"
    logged(6, 1.0, id=parent, config={"lr": 0.1})
    logged(2, 10.0, id=child, fork_from=f"{parent}?_step=3")
    results: dict[str, Any] = {"child": history(child), "parent": history(parent)}
    if "resume_from" not in signature(wandb.init).parameters:  # 0.16
        return results
    logged(1, 100.0, resume_from=f"{parent}?_step=1")
    run = wandb.Api().run(f"{PATH}/{parent}")
    results["rewound"] = history(parent)
    results["summary"], results["config"] = run.summary["loss"], run.config
    try:
        logged(1, 1.0, id=f"{prefix}-orphan", fork_from="branch-missing?_step=3")
    except Exception as error:  # noqa: BLE001 - the test compares its text
        results["orphan"] = str(error)
    return results


if __name__ == "__main__":
    os.environ["WANDB_SILENT"] = "true"
    Path(sys.argv[1]).write_text(json.dumps(main(sys.argv[2])))
