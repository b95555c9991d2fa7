"""The routes of this package. They load its modules: see `server/account_routes.py`."""

from __future__ import annotations

from runvitals.server.accounts.routes import (
    account,
    api_keys,
    beta,
    device_login,
    emails,
    export,
    passkeys,
    password,
    password_reset,
    pictures,
    profile,
    second_factor,
    sessions,
    setup,
    sign_in,
    sign_up,
    sudo,
    users,
)
from runvitals.server.http.router import Router

router = Router(prefix="/api/v1")
for resource in (
    sign_in,
    sudo,
    sign_up,
    setup,
    password_reset,
    device_login,
    account,
    profile,
    export,
    pictures,
    password,
    sessions,
    emails,
    api_keys,
    second_factor,
    passkeys,
    beta,
    users,
):
    router.include_router(resource.router)
