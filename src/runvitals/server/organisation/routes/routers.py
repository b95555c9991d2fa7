"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.audit.routes import audit, audit_webhook
from runvitals.server.http.router import Router
from runvitals.server.mail.routes import mail
from runvitals.server.organisation.routes import (
    invitations,
    keys,
    members,
    roles,
    scim_secret,
    settings,
    teams,
)

router = Router(prefix="/api/v1")
for resource in (
    settings,
    mail,
    members,
    invitations,
    teams,
    roles,
    keys,
    audit,
    audit_webhook,
    scim_secret,
):
    router.include_router(resource.router)
