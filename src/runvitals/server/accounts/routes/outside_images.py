"""Images from elsewhere, as this server shows them in users' texts."""

from __future__ import annotations

from fastapi import HTTPException
from fastapi.responses import Response

from runvitals.model.media_types import SVG
from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.same_origin import INERT_POLICY
from runvitals.server.http.errors import too_many
from runvitals.server.http.router import Router
from runvitals.server.outbound.policy import Blocked
from runvitals.server.service_parameters import TheOutsideServices
from runvitals.server.user_content.outside_images import NoImage, TooManyFetches

_A_DAY = "private, max-age=86400"

router = Router()


@router.get(
    "/-/image/{signature}/{name}", include_in_schema=False, dependencies=[needs(PUBLIC), with_accounts()]
)
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
