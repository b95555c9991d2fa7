"""Sign-in, the user's own account and other users. The shared server alone includes it.

Each resource is a module with a `router`, listed here.
"""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.api.accounts import (
    account,
    api_keys,
    beta,
    device_login,
    emails,
    export,
    outside_images,
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
    usage,
    users,
)

router = APIRouter(prefix="/api/v1")
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
    usage,
    users,
):
    router.include_router(resource.router)

shown_images = APIRouter()
"""Images within pages, which are not part of the API."""
for images in (pictures.shown, outside_images.router):
    shown_images.include_router(images)
