"""Pictures of users, teams and the organisation, which `shown_images` shows as squares."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import HTTPException, Query, Request
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.errors import InvalidFields, too_many
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.user_content.pictures import (
    MEDIA_TYPES,
    PictureTooLarge,
    ScaledPicture,
    TooManyPictures,
    UnreadablePicture,
    square_picture,
)

_CROP: Final = re.compile(r"(\d{1,6}),(\d{1,6}),(\d{1,6}),(\d{1,6})")

router = Router()

Crop = Annotated[
    str | None,
    Query(description="x,y,width,height in pixels; default: the largest square around the centre."),
]


class StoredPicture(ResponseBody):
    """The digest of a picture, by which it is shown."""

    picture: str


@router.put("/account/picture", needs("account:update"))
async def put_own_picture(
    request: Request, access: TheAccess, owner: TheOwner, crop: Crop = None
) -> StoredPicture:
    """Set the picture of the account: the body is a PNG, JPEG, WebP or GIF of at most 5 MB."""
    accounts = access.accounts

    def store(square: ScaledPicture) -> str:
        entity_id = accounts.users.get(owner.id).entity_id
        return accounts.pictures.put(entity_id, square.large, square.small, owner.actor, access.clock())

    return await _put(request, store, crop)


@router.delete("/account/picture", needs("account:update"), status_code=204)
def remove_own_picture(access: TheAccess, owner: TheOwner) -> None:
    """Remove the picture of the account."""
    entity_id = access.accounts.users.get(owner.id).entity_id
    access.accounts.pictures.remove(entity_id, owner.actor, access.clock())


@router.put("/teams/{team}/picture", needs("team:update"))
async def put_team_picture(
    team: str, request: Request, access: TheAccess, requester: TheRequester, crop: Crop = None
) -> StoredPicture:
    """Set the picture of a team; see the picture of an account."""
    accounts = access.accounts

    def store(square: ScaledPicture) -> str:
        team_id = accounts.teams.by_name(team).id
        return accounts.pictures.put(team_id, square.large, square.small, requester.actor, access.clock())

    return await _put(request, store, crop)


@router.delete("/teams/{team}/picture", needs("team:update"), status_code=204)
def remove_team_picture(team: str, access: TheAccess, requester: TheRequester) -> None:
    """Remove the picture of a team."""
    team_id = access.accounts.teams.by_name(team).id
    access.accounts.pictures.remove(team_id, requester.actor, access.clock())


@router.put("/organisation/picture", needs("org:settings"))
async def put_organisation_picture(
    request: Request, access: TheAccess, requester: TheRequester, crop: Crop = None
) -> StoredPicture:
    """Set the picture of the organisation, which the sign-in page shows; see the picture of an account."""
    pictures = access.accounts.pictures

    def store(square: ScaledPicture) -> str:
        return pictures.put_of_organisation(square.large, square.small, requester.actor, access.clock())

    return await _put(request, store, crop)


@router.delete("/organisation/picture", needs("org:settings"), status_code=204)
def remove_organisation_picture(access: TheAccess, requester: TheRequester) -> None:
    """Remove the picture of the organisation."""
    access.accounts.pictures.remove_of_organisation(requester.actor, access.clock())


async def _put(request: Request, store: Callable[[ScaledPicture], str], crop: str | None) -> StoredPicture:
    """Store the body. `store` writes to the database, so it is called in a thread; it returns the digest."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        raise HTTPException(415, f"expected one of {', '.join(sorted(MEDIA_TYPES))}, not {media_type[:60]!r}")
    upload, box = await request.body(), _box(crop)

    try:
        return StoredPicture(picture=await run_in_threadpool(lambda: store(square_picture(upload, box))))
    except PictureTooLarge as error:
        raise HTTPException(413, str(error)) from None
    except UnreadablePicture as error:
        raise HTTPException(422, str(error)) from None
    except TooManyPictures as error:
        raise too_many(str(error), 5) from None


def _box(crop: str | None) -> tuple[int, int, int, int] | None:
    if crop is None:
        return None
    numbers = _CROP.fullmatch(crop)
    if numbers is None:
        raise InvalidFields({"crop": "expected x,y,width,height in pixels"})
    left, top, width, height = map(int, numbers.groups())
    return left, top, width, height
