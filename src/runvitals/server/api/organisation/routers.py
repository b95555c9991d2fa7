"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.api.organisation import (
    audit,
    audit_webhook,
    invitations,
    keys,
    mail,
    members,
    names,
    roles,
    scim_secret,
    settings,
    slack_app,
    teams,
)
from runvitals.server.router import Router

router = Router(prefix="/api/v1")
for resource in (
    settings,
    mail,
    slack_app,
    members,
    invitations,
    teams,
    roles,
    keys,
    names,
    audit,
    audit_webhook,
    scim_secret,
):
    router.include_router(resource.router)
