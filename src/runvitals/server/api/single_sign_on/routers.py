"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.api.single_sign_on import issuers, logins, providers, redirects
from runvitals.server.router import Router

router = Router(prefix="/api/v1")
for resource in (redirects, logins, providers, issuers):
    router.include_router(resource.router)
