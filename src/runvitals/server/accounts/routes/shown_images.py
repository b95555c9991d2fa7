"""Images within pages, which are not part of the API: pictures, and images from elsewhere in texts."""

from __future__ import annotations

from typing import Final, Literal

from fastapi import HTTPException
from fastapi.responses import Response

from runvitals.model.media_types import SVG
from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.http.errors import too_many
from runvitals.server.http.router import Router
from runvitals.server.http.same_origin import INERT_POLICY
from runvitals.server.outbound.policy import Blocked
from runvitals.server.service_parameters import TheAccess, TheOutsideServices
from runvitals.server.user_content.outside_images import NoImage, TooManyFetches

_A_DAY: Final = "private, max-age=86400"
_FOREVER: Final = "private, max-age=31536000, immutable"

router = Router()


@router.get("/-/picture/{digest}", needs(PUBLIC), with_accounts(), include_in_schema=False)
def picture(digest: str, access: TheAccess, s: Literal["64", "512"] = "512") -> Response:
    """A picture as WebP. Its digest is known only to those who see whose picture it is."""
    body = access.accounts.pictures.body(digest[:64], 64 if s == "64" else 512)
    if body is None:
        raise HTTPException(404, "there is no such picture")
    return Response(body, media_type="image/webp", headers={"cache-control": _FOREVER})


@router.get("/-/image/{signature}/{name}", needs(PUBLIC), with_accounts(), include_in_schema=False)
def outside_image(signature: str, name: str, services: TheOutsideServices) -> Response:
    """The image at a URL that this server has signed because it is in a text."""
    try:
        image = services.images.image(services.image_links().url(signature, name))
    except (Blocked, NoImage) as error:
        raise HTTPException(404, str(error)) from None
    except TooManyFetches as error:
        raise too_many(str(error), 5) from None
    headers = {"cache-control": _A_DAY}
    if image.media_type == SVG:
        headers["content-security-policy"] = INERT_POLICY
    return Response(image.body, media_type=image.media_type, headers=headers)
