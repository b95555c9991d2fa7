"""What the real wandb logs to a server of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, eventually
from tests.server.doors.wandb.conftest import Door
from tests.server.serving import Served

CLIENT = Path(__file__).with_name("client.py")
KEY = "0123456789" * 4


def environment(served: Served, folder: Path) -> dict[str, str]:
    """The variables that a user sets, in an empty home."""
    passed = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    folders = dict.fromkeys(
        ("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "TMPDIR"), str(folder)
    )
    off = {"WANDB_ERROR_REPORTING": "false"}
    return {**passed, **folders, **off, "WANDB_BASE_URL": served.url, "WANDB_API_KEY": KEY}


@pytest.fixture(scope="module")
def printed(served: Served, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the client printed that resumed a run whose process was killed, and logged others."""
    folder = tmp_path_factory.mktemp("client")
    how: dict[str, Any] = {"env": environment(served, folder), "cwd": folder, "text": True}
    killed = subprocess.Popen([sys.executable, CLIENT, "until_killed"], stdout=subprocess.PIPE, **how)
    try:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "logged\n"
        eventually(lambda: len(steps(served, "killed")) == 5)
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=PATIENCE_S)
    done = subprocess.run(
        [sys.executable, CLIENT, "everything"], capture_output=True, timeout=PATIENCE_S, check=False, **how
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def steps(served: Served, run: str, *names: str) -> list[float]:
    """The steps at which a run has logged; of these names, or of all.

    Names that were logged at other steps are groups of their own: a step of two groups is there twice.
    """
    url = f"{served.url}/api/v1/runs/{run}/history"
    response = httpx.get(url, params={"keys": names}, timeout=PATIENCE_S)
    if response.status_code == 404:
        return []
    return sorted(step for group in response.json()["groups"] for step in group["step"])


def test_what_a_run_says_about_itself(served: Served, printed: str) -> None:
    run = Door(served, "all").shown()
    assert (run["state"], run["exit_code"], run["project"], run["name"]) == ("finished", 0, "digits", "first")
    assert (run["tags"], run["notes"], run["group"], run["job_type"]) == (["a"], "n", "g", "train")
    assert run["config"] == {"lr": 0.1, "net": {"layers": [1, 2]}}
    assert run["summary"]["val/loss"] == 1.0
    assert run["summary"]["best"] == 0.5
    assert run["summary"]["net.a"] == 4
    assert run["defined_metrics"] == {
        "val/*": {"summary": "min", "x": "epoch"}, "kept": {"summary": "last"}, "bad": {"summary": "none"},
    }  # fmt: skip
    (machine,) = run["machines"].values()
    assert "numpy" in machine["packages"]
    assert machine["python"].startswith("CPython")
    assert run["command"][0].endswith("client.py")
    assert [(event["name"], event["data"]["title"]) for event in run["events"]] == [("alert", "Careful")]


def test_its_rows_system_metrics_and_console(served: Served, printed: str) -> None:
    run = Door(served, "all")
    (group,) = run.shown("/history", keys=["val/loss", "net.a", "bad"])["groups"]
    assert group["series"] == {"val/loss": [1, 2, 3, 4, 5], "net.a": [0, 1, 2, 3, 4], "bad": [None] * 5}
    (last,) = run.shown()["last"].values()
    assert {"memory_percent", "proc.memory.rssMB"} <= last.keys()
    assert "said\n" in [piece["text"] for piece in run.shown("/console")["pieces"]]


def test_its_media_and_files(served: Served, printed: str) -> None:
    run = Door(served, "all")
    kinds = {media["key"]: media["kind"] for media in run.shown("/media")["media"]}
    assert kinds == {
        "image": "image",
        "images": "image",
        "table": "table",
        "histogram": "histogram",
        "page": "html",
    }
    for key, count in (("image", 1), ("images", 2), ("page", 1)):
        (record,) = run.shown("/media/records", key=key)["records"]
        assert len(record["items"]) == count
        for item in record["items"]:
            assert len(content(run, item["sha256"])) == item["bytes"]
    (record,) = run.shown("/media/records", key="table")["records"]
    assert content(run, record["items"][0]["sha256"]) == (
        b'{"columns": ["n", "text"], "rows": [[1, "x"], [2.5, "y"]]}'
    )
    files = {file["name"]: file["sha256"] for file in run.shown("/files")["files"]}
    assert content(run, files["saved.txt"]) == b"kept"
    assert {"wandb-metadata.json", "requirements.txt", "config.yaml", "output.log"} <= files.keys()


def content(run: Door, sha256: str) -> bytes:
    url = f"{run.served.url}/api/v1/runs/{run.run}/files/{sha256}"
    response = httpx.get(url, timeout=PATIENCE_S)
    assert response.status_code == 200
    return response.content


def test_a_run_whose_process_was_killed_is_resumed(served: Served, printed: str) -> None:
    assert steps(served, "killed") == [0, 1, 2, 3, 4, 5]
    run = Door(served, "killed").shown()
    assert (run["state"], run["exit_code"]) == ("failed", 3)
    assert "Run (killed) already exists" in printed
    assert "Run (missing) does not exist" in printed


def test_a_run_that_was_logged_offline_is_synced(served: Served, printed: str) -> None:
    assert steps(served, "offline") == list(range(100))
    assert Door(served, "offline").shown()["state"] == "finished"


def test_recorded_sessions_of_a_run_are_merged_in_any_order(served: Served, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, CLIENT, "slices"],
        env=environment(served, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    losses = {step: (100 if step < 40 else 200 if step < 80 else 300) + step for step in range(100)}
    for run in ("forward", "backward"):
        groups = Door(served, run).shown("/history", keys="loss")["groups"]
        rows = [row for group in groups for row in zip(group["step"], group["series"]["loss"], strict=True)]
        assert sorted(rows) == sorted(losses.items())
        shown = Door(served, run).shown()
        assert (shown["state"], shown["summary"]["loss"]) == ("finished", 399)
