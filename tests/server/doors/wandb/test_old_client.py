"""What wandb 0.16 logs to a server of ours: it speaks the protocol of before the client was rewritten."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import Door
from tests.server.doors.wandb.test_client import environment, steps
from tests.server.serving import Served

SCRIPT = Path(__file__).with_name("old_client.py")
PYTHON = Path(__file__).parents[4] / "build/clients/wandb--0.16.6/bin/python"


@pytest.mark.skipif(not PYTHON.exists(), reason="wandb 0.16 is not installed: scripts/test")
def test_the_oldest_client_logs_and_resumes(served: Served, tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, SCRIPT],
        env=environment(served, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    run = Door(served, "old").shown()
    assert (run["state"], run["name"], run["tags"], run["config"]) == (
        "finished",
        "first",
        ["a"],
        {"lr": 0.1},
    )
    assert steps(served, "old", "epoch") == [0, 1, 2, 3, 4, 6]
    assert steps(served, "old", "val/loss") == [0, 1, 2, 3, 4]
    assert run["summary"]["val/loss"] == 1.0
    assert [event["data"]["title"] for event in run["events"]] == ["Careful"]
    assert [media["kind"] for media in Door(served, "old").shown("/media")["media"]] == ["histogram"]
