"""Runs that other clients sent are judged by what they have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from runvitals.cli import main
from runvitals.readers.journals.run_handle import open_run
from tests.patience import PATIENCE_S, eventually
from tests.server.findings.sent_runs import SECONDS, SentRun, send_with_opentelemetry, write_wandb_folder
from tests.server.serving import Served, serving

EXPECTED: dict[str, set[str]] = {
    "healthy": set(),
    "not_finite": {"loss_not_finite"},
    "diverged": {"loss_diverged"},
    "input_bound": {"input_bound_cpu"},
    "half_unused": {"idle_devices"},
    "fills_disk": {"disk_full_soon"},
    "leaks": {"memory_growth"},
}
BEGAN_AGO_S = 3 * 3600
"""Each was sent an hour after it had ended."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("judged")) as served:
        yield served


@pytest.fixture(scope="module")
def runs() -> list[SentRun]:
    return [SentRun(kind, time.time() - BEGAN_AGO_S) for kind in EXPECTED]


def environment(served: Served, folder: Path) -> dict[str, str]:
    """The variables that a user sets, in an empty home."""
    home = dict.fromkeys(("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "TMPDIR"), str(folder))
    return {
        "PATH": os.environ["PATH"],
        **home,
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_BASE_URL": served.url,
        "WANDB_API_KEY": "0123456789" * 4,
        "MLFLOW_TRACKING_URI": served.url,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "GIT_PYTHON_REFRESH": "quiet",
    }


def done(served: Served, folder: Path, *command: str) -> str:
    """What a program printed."""
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, *command],
        env={**environment(served, folder), "PYTHONPATH": str(root)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


def findings(served: Served, run: str) -> dict[str, Any]:
    response = httpx.get(f"{served.url}/api/v1/runs/{run}/findings", timeout=PATIENCE_S)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def accused(found: dict[str, Any]) -> set[str]:
    return {each["id"] for each in found["findings"] if each["severity"] != "info"}


def check_import(source: str, folder: Path, ids: dict[str, str]) -> None:
    """Import runs from the server, and judge their journals."""
    assert main(["import", source, "--dir", str(folder)]) == 0
    found = {kind: open_run(run, str(folder)).findings().to_json() for kind, run in ids.items()}
    assert {kind: accused(each) for kind, each in found.items()} == {kind: EXPECTED[kind] for kind in ids}


def check(served: Served, ids: dict[str, str], ended: bool, but: dict[str, set[str]] | None = None) -> None:
    """Compare what is found with what is expected, but for some kinds of runs."""
    expected = {kind: (but or {}).get(kind, EXPECTED[kind]) for kind in ids}
    if ended:
        for run in ids.values():
            url = f"{served.url}/api/v1/runs/{run}"
            eventually(lambda url=url: httpx.get(url, timeout=PATIENCE_S).json()["state"] == "finished")
    judged = {kind: findings(served, run) for kind, run in ids.items()}
    assert {kind: accused(found) for kind, found in judged.items()} == expected
    assert {kind: found["verdict"]["id"] for kind, found in judged.items()} == {
        kind: next(iter(found), "healthy") for kind, found in expected.items()
    }
    (unused,) = judged["half_unused"]["findings"]
    assert (unused["devices"], unused["hosts"]) == ([2, 3], unused["hosts"][:1])
    assert judged["input_bound"]["findings"][0]["share"] == pytest.approx(1 - 90 / SECONDS, abs=0.05)
    undecided = {each["id"] for each in judged["healthy"]["undecided"]}
    assert {"thermal_throttling", "cpu_limit", "launch_bound", "memory_errors"} <= undecided
    assert {"idle", "idle_devices", "disk_full_soon"} <= set(judged["healthy"]["fine"])


def test_runs_of_the_client_of_wandb(
    served: Served, runs: list[SentRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {run.kind: f"wandb{number}" for number, run in enumerate(runs)}
    folders = [str(write_wandb_folder(run, ids[run.kind], tmp_path)) for run in runs]
    done(served, tmp_path, "-m", "wandb", "sync", "--entity", "main", "--project", "judged", *folders)
    check(served, ids, ended=True)
    monkeypatch.setenv("WANDB_BASE_URL", served.url)
    monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
    check_import("wandb:main/judged", tmp_path / "imported", ids)


def test_runs_of_the_client_of_mlflow(served: Served, runs: list[SentRun], tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("sent_runs.py"))
    printed = done(served, tmp_path, script, str(runs[0].start_s), *EXPECTED)
    ids = json.loads(printed.splitlines()[-1])
    check(served, ids, ended=True)
    check_import(f"mlflow:{served.url}", tmp_path / "imported", ids)


def test_runs_of_the_exporter_of_opentelemetry(served: Served, runs: list[SentRun]) -> None:
    """Of its metrics a NaN is a gap, and nothing says that a run has ended."""
    ids = send_with_opentelemetry(runs, served.url)
    check(served, ids, ended=False, but={"not_finite": set()})
    undecided = {each["id"] for each in findings(served, ids["not_finite"])["undecided"]}
    assert "loss_not_finite" in undecided
    assert {"hang", "idle_tail"} & undecided


def test_event_files_of_tensorboard_have_rows_only(runs: list[SentRun], tmp_path: Path) -> None:
    judged = [run for run in runs if run.kind in ("healthy", "not_finite", "diverged")]
    for run in judged:
        writer = EventFileWriter(str(tmp_path / "logs" / run.kind))
        for step, (at, loss) in enumerate(zip(run.steps, run.loss, strict=True)):
            value = summary_pb2.Summary.Value(tag="train/loss", simple_value=loss)
            event = event_pb2.Event(
                wall_time=run.start_s + at, step=step, summary=summary_pb2.Summary(value=[value])
            )
            writer.add_event(event)
        writer.close()
    assert main(["import", f"tensorboard:{tmp_path}/logs", "--dir", str(tmp_path)]) == 0
    for folder in (tmp_path / "runs").iterdir():
        imported = open_run(folder.name, str(tmp_path))
        found = imported.findings().to_json()
        assert accused(found) == EXPECTED[imported.facts.name], imported.facts.name
        undecided = {each["id"] for each in found["undecided"]}
        assert {"idle", "communication_bound", "input_bound_cpu", "memory_growth"} <= undecided
