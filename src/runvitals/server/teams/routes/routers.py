"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.alerts.routes import automations, notifications
from runvitals.server.alerts.routes import team_secrets as secrets
from runvitals.server.http.router import Router
from runvitals.server.teams.routes import (
    destinations,
    entity_page,
    invitations,
    joining,
    members,
    profile,
    projects,
    received_invitations,
    service_accounts,
    settings,
    teams,
)
from runvitals.server.usage.routes import team_usage as usage

router = Router(prefix="/api/v1")
for resource in (
    teams,
    members,
    settings,
    profile,
    entity_page,
    projects,
    invitations,
    received_invitations,
    joining,
    service_accounts,
    usage,
    secrets,
    destinations,
    automations,
    notifications,
):
    router.include_router(resource.router)
