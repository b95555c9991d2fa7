"""`/organisation/…`: for administrators of a shared server. It loads the tables of accounts."""

from __future__ import annotations

from fastapi import APIRouter

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
    teams,
)

router = APIRouter(prefix="/api/v1")
for resource in (
    settings,
    mail,
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
