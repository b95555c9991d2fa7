"""`/teams/…`: teams, their members and settings. For shared servers only: it loads the tables of accounts."""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.api.teams import (
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

router = APIRouter(prefix="/api/v1")
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
    automations,
    notifications,
):
    router.include_router(resource.router)
