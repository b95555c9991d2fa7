"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.http.router import Router
from runvitals.server.teams.routes import (
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
):
    router.include_router(resource.router)
