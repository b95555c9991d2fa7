"""Signing in by a provider, the logins of an account, and their settings; only in the shared server.

Each resource is a module with a `router`, listed here.
"""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.api.single_sign_on import issuers, logins, providers, redirects

router = APIRouter(prefix="/api/v1")
for resource in (redirects, logins, providers, issuers):
    router.include_router(resource.router)
