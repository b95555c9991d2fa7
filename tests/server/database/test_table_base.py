"""What the definitions of the tables load."""

from __future__ import annotations

import subprocess
import sys


def test_a_server_on_sqlite_does_not_load_the_dialect_of_postgresql() -> None:
    loaded = (
        "import sys, runvitals.server.shared_server; print('sqlalchemy.dialects.postgresql' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert printed.stdout == "False\n"
