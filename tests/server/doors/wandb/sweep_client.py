"""Sweeps of the installed client, newest or oldest: run as a program, by the tests.

python sweep_client.py RESULT.json
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import wandb
from wandb.agents import pyagent

PATH = "main/digits"


def train() -> None:
    run = wandb.init()
    for step in range(3):
        run.log({"loss": (run.config["lr"] - 0.2) ** 2 + 1 / (step + 1)})


def swept(method: str, runs: int, **more: Any) -> dict[str, Any]:
    """Run a sweep, and return what the client reads of it."""
    config = {
        "method": method,
        "metric": {"name": "loss", "goal": "minimize"},
        "run_cap": runs,
        "parameters": {"lr": {"values": [0.1, 0.2]}, "net": {"parameters": {"width": {"value": 3}}}},
        **more,
    }
    name = wandb.sweep(config, project="digits", entity="main")
    wandb.agent(name, train, project="digits", entity="main")
    sweep = wandb.Api().sweep(f"{PATH}/{name}")
    best = sweep.best_run()
    return {
        "name": name,
        "state": sweep.state,
        "method": sweep.config["method"],
        "expected": sweep.expected_run_count,
        "runs": sorted((run.config["lr"], run.config["net"]["width"], run.state) for run in sweep.runs),
        "best": best.config["lr"],
        "order": sweep.order,
    }


def set_state(name: str, state: str) -> None:
    """Return what `wandb sweep --pause`, `--resume`, `--stop` and `--cancel` do."""
    public = importlib.import_module("wandb.apis.public.sweeps")
    if hasattr(public, "_set_sweep_state"):
        public._set_sweep_state(wandb.Api(), name, state, entity="main", project="digits")
    else:
        internal = importlib.import_module("wandb.apis").InternalApi()
        internal.set_sweep_state(name, state, entity="main", project="digits")


def controlled() -> list[str]:
    """The states of a sweep as the command line changes them, and why it cannot."""
    config = {"method": "random", "parameters": {"lr": {"min": 0.0, "max": 1.0}}}
    name = wandb.sweep(config, project="digits", entity="main")
    states = []
    for state in ("RUNNING", "PAUSED", "RUNNING", "FINISHED", "CANCELED"):
        try:
            set_state(name, state)
            states.append(wandb.Api().sweep(f"{PATH}/{name}").state)
        except Exception as error:  # noqa: BLE001 - the test compares its text
            states.append(str(error))
    return states


def refused() -> str:
    """Return what the client says of a wrong configuration."""
    try:
        wandb.sweep({"method": "grid", "parameters": {"lr": {"values": 3}}}, project="digits", entity="main")
    except Exception as error:  # noqa: BLE001 - the test compares its text
        return str(error)
    return ""


def main() -> dict[str, Any]:
    # A client of today waits so long between two reports, which its own tests shorten.
    pyagent.Agent.HEARTBEAT_SLEEP_SECONDS = 0.2
    results = {"controlled": controlled(), "refused": refused()}
    return {**results, "grid": swept("grid", 10), "bayes": swept("bayes", 1)}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(main()))
