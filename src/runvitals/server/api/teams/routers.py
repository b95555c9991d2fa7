"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.api.teams import (
    apprise_destinations,
    automations,
    entity_page,
    invitations,
    joining,
    members,
    notifications,
    profile,
    projects,
    received_invitations,
    secrets,
    service_accounts,
    settings,
    slack_destinations,
    teams,
    usage,
    webhooks,
)
from runvitals.server.router import Router

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
    webhooks,
    slack_destinations,
    apprise_destinations,
    automations,
    notifications,
):
    router.include_router(resource.router)
