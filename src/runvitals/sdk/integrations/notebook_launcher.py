"""The page of this machine's runs in the launcher of JupyterLab, by the package `jupyter-server-proxy`.

That package starts what is declared as an entry point of `jupyter_serverproxy_servers`, when a user opens it.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

SECRET = "RUNVITALS_UI_SECRET"
"""What a program that starts the page sends as its key, so that no link is needed."""

_ICON = Path(__file__).parents[2] / "server" / "static" / "favicon.svg"


def page_server() -> dict[str, Any]:
    """Return how to start `runvitals ui`, with a secret that proves that requests come from here."""
    secret = secrets.token_urlsafe(24)
    return {
        "command": [sys.executable, "-m", "runvitals", "ui", "--no-browser", "--port", "{port}"],
        "environment": {SECRET: secret},
        "request_headers_override": {"Authorization": f"Bearer {secret}"},
        "timeout": 60,
        "launcher_entry": {"title": "runvitals", "icon_path": str(_ICON)},
    }
