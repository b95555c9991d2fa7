"""In CI, a test that is skipped because a package is not installed fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.skip(reason="chromium is not installed")
def test_page(): ...

@pytest.mark.skip(reason="this machine has no IPv6")
def test_ipv6(): ...
"""


def outcomes(folder: Path, environment: dict[str, str]) -> str:
    (folder / "test_skipped.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "--rootdir",
        str(folder),
        str(folder),
    ]
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(command, env=inherited | environment, cwd=ROOT, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "summary"), [({}, "2 skipped in"), ({"CI": "true"}, "1 skipped, 1 error in")]
)
def test_installable_requirements_must_be_installed(
    tmp_path: Path, environment: dict[str, str], summary: str
) -> None:
    assert summary in outcomes(tmp_path, environment)
