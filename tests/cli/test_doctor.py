"""`runvitals doctor`, as a process."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.sdk.runs import environment


def doctor(folder: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runvitals", "doctor", *options]
    return subprocess.run(
        command,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_text_output_and_bundle(tmp_path: Path) -> None:
    path = tmp_path / "help.tar.gz"
    done = doctor(tmp_path, "--bundle", str(path), RUNVITALS_TOKEN="rvt_planted_secret")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.split("\n")
    assert any(line.startswith("PASS     cpu ") for line in lines)
    assert any(line.startswith("ABSENT   gaudi ") for line in lines)
    assert any(line.startswith("PASS     start ") for line in lines)
    assert "rvt_planted_secret" not in done.stdout + done.stderr
    with tarfile.open(path) as tar:
        assert "runvitals-doctor/doctor.json" in tar.getnames()


def test_failure_gives_exit_code_1_and_escape_sequences_are_escaped(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json", RUNVITALS_COLLECTORS="cpu,\x1b[31mred")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["failed"]
    (fault,) = (finding for finding in report["findings"] if finding["state"] == "FAIL")
    assert fault["name"] == "\x1b[31mred"
    assert "unknown collector" in fault["text"]
    shown = doctor(tmp_path, RUNVITALS_COLLECTORS="cpu,\x1b[31mred", PYTHONIOENCODING="ascii")
    assert "\\x1b[31mred" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert shown.stdout.isascii()
