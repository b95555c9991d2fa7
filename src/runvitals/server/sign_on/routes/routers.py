"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.http.router import Router
from runvitals.server.sign_on.routes import issuers, logins, providers, redirects

router = Router(prefix="/api/v1")
for resource in (redirects, logins, providers, issuers):
    router.include_router(resource.router)
