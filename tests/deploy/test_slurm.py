"""The scripts of deploy/slurm: a job's nodes are one run, which its programs join."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals import open_run
from tests.patience import PATIENCE_S, eventually

SCRIPTS = Path(__file__).parents[2] / "deploy" / "slurm"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    if shutil.which("runuser", path="/usr/sbin:/sbin:/usr/bin") is None or os.geteuid() != 0:
        pytest.skip("this machine does not let its user start programs as other users")
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
        "HOME": str(tmp_path),
        "RUNVITALS_DIR": str(tmp_path / "data"),
        "RUNVITALS_PROLOG_FOLDER": str(tmp_path / "prolog"),
        "SLURM_JOB_ID": "77",
        "SLURM_JOB_USER": getpass.getuser(),
        "SLURM_JOB_NAME": "my job",
        "SLURM_JOB_PARTITION": "gpu",
        "SLURM_CLUSTER_NAME": "c1",
    }


def execute(script: str, environ: dict[str, str]) -> str:
    return subprocess.run(
        [SCRIPTS / script], env=environ, check=True, capture_output=True, text=True, timeout=PATIENCE_S
    ).stdout


def shown(folder: str) -> str:
    command = [sys.executable, "-m", "runvitals", "runs", "--dir", folder]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


def test_the_run_of_a_job_lasts_as_long_as_the_job(environ: dict[str, str], tmp_path: Path) -> None:
    run, folder = "slurm-c1-77", str(tmp_path / "data")
    assert execute("task_prolog.sh", environ) == f"export RUNVITALS_RUN_ID={run}\n"
    execute("prolog.sh", environ)
    try:
        eventually(
            lambda: (tmp_path / "data" / "runs" / run).is_dir() and open_run(run, folder).state == "running"
        )
        assert re.search(r"my job 77.* gpu ", shown(folder))
    finally:
        execute("epilog.sh", environ)
        eventually(lambda: open_run(run, folder).state == "finished")
    assert not list((tmp_path / "prolog").iterdir())


def test_slurm_starts_the_prolog_without_a_path(environ: dict[str, str]) -> None:
    del environ["PATH"]
    command = ["/bin/sh", "-x", SCRIPTS / "prolog.sh"]
    done = subprocess.run(command, env={**environ, "SLURM_JOB_USER": ""}, capture_output=True, text=True)
    assert "export PATH=/usr/local/sbin:" in done.stderr
    assert ":/usr/bin:/sbin:/bin:/opt/runvitals/bin\n" in done.stderr


def test_a_node_without_runvitals_is_not_drained(environ: dict[str, str], tmp_path: Path) -> None:
    environ["PATH"] = "/usr/bin:/bin"
    assert execute("prolog.sh", environ) == execute("epilog.sh", environ) == ""
    assert not (tmp_path / "prolog").exists()
