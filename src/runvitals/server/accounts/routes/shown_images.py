"""Images within pages, which are not part of the API."""

from __future__ import annotations

from runvitals.server.accounts.routes import outside_images, pictures
from runvitals.server.http.router import Router

router = Router()
for images in (pictures.shown, outside_images.router):
    router.include_router(images)
