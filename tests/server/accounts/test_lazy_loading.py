"""The local page is for one user and their own machine: it loads nothing of accounts."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE_S

_LOADED = """
import sys
import runvitals.server.app, runvitals.server.library.local.run_library
rooms = ("accounts", "database", "access.decision", "access.matrix", "access.directory", "access.principals")
unwanted = (*(f"runvitals.server.{room}" for room in rooms), "sqlalchemy", "argon2")
print(sorted(name for name in sys.modules if name.startswith(unwanted) or ".storage" in name))
"""


def test_the_local_page_loads_no_accounts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_tables_load_no_web_framework() -> None:
    """Commands of accounts and stores use them: FastAPI would add a third of a second to each."""
    program = "import sys, runvitals.server.account_store; print('fastapi' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
