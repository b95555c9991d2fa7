"""Unmodified clients of MLflow: the newest, and the oldest that is supported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.serving import Served

SCRIPT = Path(__file__).with_name("client_session.py")
# scripts/old-client mlflow-skinny==2.8.1 installs it.
OLDEST = Path(__file__).parents[4] / "build/clients/mlflow-skinny--2.8.1/bin/python"
EXPECTED: dict[str, Any] = {
    "again": True,
    "param_error": "INVALID_PARAMETER_VALUE",
    "status": "FINISHED",
    "name": "first",
    "ended": True,
    "params": {"lr": "0.001", "depth": "50", "net/kind": "resnet", "empty": "", "on": "True", "batch": "yes"},
    "tags": {"team": "vision", "a": "1", "batched": "yes"},
    "note": "a note",
    "metrics": [0.05, 0.5, True, True],
    "steps": list(range(20)),
    "many": True,
    "resumed": "RUNNING",
    "failed": "FAILED",
    "found": ["first"],
    "order": ["first", "second"],
    "pages": [1, 1],
    "deleted": ["second"],
    "experiments": [[True, "ada"]],
    "stage": "deleted",
    "filter_error": "INVALID_PARAMETER_VALUE",
}


def session(served: Served, python: str, *arguments: str) -> dict[str, Any]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")},
        "MLFLOW_TRACKING_URI": served.url,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
        "GIT_PYTHON_REFRESH": "quiet",
    }
    done = subprocess.run(
        [python, str(SCRIPT), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 4,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def check(results: dict[str, Any], name: str) -> str:
    run: str = results.pop("run")
    assert results.pop("renamed") == f"{name}-renamed"
    assert results == EXPECTED
    return run


def test_the_newest_client(served: Served) -> None:
    results = session(served, sys.executable, "newest", "system")
    run = check(results["session"], "newest")
    row = served.metadata_store.runs.find(run, served.app.services.access.clock())
    assert row is not None
    assert (row.name, row.project, row.state) == ("first", "newest-renamed", "finished")
    system = results["system"]
    assert "system/cpu_utilization_percentage" in system["keys"]
    assert system["steps"] == list(range(len(system["steps"])))
    row = served.metadata_store.runs.find(system["run"], served.app.services.access.clock())
    assert row is not None
    assert row.state == "finished"


@pytest.mark.skipif(not OLDEST.exists(), reason="MLflow 2.8 is not installed")
def test_the_oldest_client(served: Served) -> None:
    results = session(served, str(OLDEST), "oldest")
    check(results["session"], "oldest")
