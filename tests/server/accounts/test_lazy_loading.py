"""The local page is for one user and their own machine: it loads nothing of accounts."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE_S

_LOADED = """
import sys
import runvitals.server.app, runvitals.server.library.local.run_library
unwanted = ("runvitals.server.accounts", "runvitals.server.database", "argon2")
print(sorted(name for name in sys.modules if name.startswith(unwanted)))
"""


def test_the_local_page_loads_no_accounts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout.strip() == "[]"
