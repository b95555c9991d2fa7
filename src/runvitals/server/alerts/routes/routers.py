"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.alerts.routes import (
    automations,
    destinations,
    firings,
    mute,
    notifications,
    own_slack,
    personal,
    rules,
    slack_app,
    slack_install,
    team,
    team_secrets,
    trial_messages,
)
from runvitals.server.http.router import Router

router = Router(prefix="/api/v1")
for resource in (
    personal,
    own_slack,
    slack_install,
    slack_app,
    team,
    trial_messages,
    mute,
    firings,
    rules,
    team_secrets,
    destinations,
    automations,
    notifications,
):
    router.include_router(resource.router)
