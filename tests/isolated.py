"""A Python process as the monitor's: without site-packages, environment variables and the current folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

SOURCE = Path(__file__).parents[1] / "src"


def printed(program: str, *arguments: str) -> str:
    """Return what a program prints that has imported `sys` and can import runvitals."""
    begin = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\n"
    command = [sys.executable, "-I", "-S", "-E", "-c", begin + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
