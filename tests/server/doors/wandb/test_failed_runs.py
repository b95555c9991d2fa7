"""Why a run of the real wandb failed, and names of any form that it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S, eventually
from tests.server.doors.wandb.conftest import Door
from tests.server.doors.wandb.test_client import environment
from tests.server.serving import Served

_SCRIPT = """
import wandb
run = wandb.init(
    project="digits", id="failing", name="meta-llama/Llama-3-8B\\n" + "x" * 300, group="a/b " * 80,
    job_type="ünïcode \\N{ROCKET}", settings=wandb.Settings(x_file_stream_transmit_interval=0.5),
)
run.log({"loss": 1.0})
print("last words")
raise ValueError("bad <b>shape</b>")
"""


def test_an_exception_and_long_names(served: Served, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment(served, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "ValueError: bad <b>shape</b>" in done.stderr
    door = Door(served, "failing")
    door.becomes("failed")
    assert door.shown()["name"].startswith("meta-llama/Llama-3-8B")
    assert door.shown()["job_type"] == "ünïcode \N{ROCKET}"
    eventually(lambda: door.shown("/failure")["lines"])
    failure = door.shown("/failure")
    assert failure["title"] == "ValueError: bad <b>shape</b>"
    assert failure["exit_code"] == 1
    assert failure["lines"][-1]["text"] == "ValueError: bad <b>shape</b>"
