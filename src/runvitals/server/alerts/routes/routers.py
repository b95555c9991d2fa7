"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.alerts.routes import (
    firings,
    mute,
    own_slack,
    personal,
    rules,
    slack_install,
    team,
    trial_messages,
)
from runvitals.server.http.router import Router

router = Router(prefix="/api/v1")
for resource in (personal, own_slack, slack_install, team, trial_messages, mute, firings, rules):
    router.include_router(resource.router)
