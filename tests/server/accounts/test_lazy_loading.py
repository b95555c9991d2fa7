"""The local page is for one user and their own machine: it loads nothing of accounts."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE_S

_LOADED = """
import sys
import runvitals.server.local_app, runvitals.server.routes
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


def test_a_shared_server_starts_without_what_the_first_request_or_run_needs() -> None:
    program = (
        "import sys, runvitals.server.background.work, runvitals.server.build, runvitals.server.http.serve\n"
        "print(*sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    late = (
        "fastapi",
        "pydantic",
        "runvitals.server.app",
        "runvitals.server.doors.exporters",
        "runvitals.server.doors.mlflow.door",
        "runvitals.server.doors.otlp.http",
        "runvitals.server.doors.promql",
        "runvitals.server.doors.remote_write",
        "runvitals.server.doors.scim.routes",
        "runvitals.server.doors.wandb.routes",
        "runvitals.server.reports.kept_panels",
        "runvitals.server.sweeps.bayes",
        "authlib",
        "graphql",
        "markdown_it",
        "nh3",
        "PIL",
        "reportlab",
        "webauthn",
        "yaml",
        "runvitals.server.runs.routes.runs",
        "runvitals.server.charts.routes",
        "runvitals.findings.rules",
        "cryptography",
    )
    assert [name for name in ran.stdout.split() if name.startswith(late)] == []
