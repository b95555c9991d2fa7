"""`/reports/{report}/files`: the images of a report."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import HTTPException, Path, Request
from fastapi.responses import Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.content_response import content_response
from runvitals.server.http.errors import too_many
from runvitals.server.http.router import Router
from runvitals.server.reports.report_files import keep_file
from runvitals.server.reports.routes.reports import REPORT, TheReport
from runvitals.server.service_parameters import TheAccess, TheRequester, received_files
from runvitals.server.user_content.pictures import (
    MEDIA_TYPES,
    PictureTooLarge,
    TooManyPictures,
    UnreadablePicture,
    whole_picture,
)

_FOREVER: Final = "private, max-age=31536000, immutable"
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
router = Router()


class UploadedFile(ResponseBody):
    """An image of a report."""

    file: str = Field(description="For the `file` of a block.")
    width: int
    height: int


@router.post(f"{REPORT}/files", needs("report:update"), response_model=UploadedFile, status_code=201)
async def upload_image(
    report: TheReport, request: Request, access: TheAccess, requester: TheRequester
) -> UploadedFile:
    """Upload an image: the body is a PNG, JPEG, WebP or GIF of at most 10 MB.

    It is decoded and stored anew as WebP of at most 2,560 pixels, without its metadata; of an animation,
    the first frame.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        raise HTTPException(415, f"expected one of {', '.join(sorted(MEDIA_TYPES))}, not {media_type[:60]!r}")
    upload, received = await request.body(), received_files(request)

    def keep() -> UploadedFile:
        picture = whole_picture(upload)
        digest = keep_file(
            received,
            access.accounts.report_files,
            report.id,
            picture.body,
            "image",
            "image/webp",
            requester.user_id,
            access.clock(),
        )
        return UploadedFile(file=digest, width=picture.width, height=picture.height)

    try:
        return await run_in_threadpool(keep)
    except PictureTooLarge as error:
        raise HTTPException(413, str(error)) from None
    except UnreadablePicture as error:
        raise HTTPException(422, str(error)) from None
    except TooManyPictures as error:
        raise too_many(str(error), 5) from None


@router.get(f"{REPORT}/files/{{digest}}", needs("report:read"), response_class=Response)
def read_image(report: TheReport, digest: Digest, request: Request, access: TheAccess) -> Response:
    """An image of a report, as WebP."""
    file = access.accounts.report_files.get(report.id, digest, "image")
    content = None if file is None else received_files(request).open_file(file)
    if content is None:
        raise HTTPException(404, f"report {report.id} has no file {digest!r}")
    response = content_response(request, content, digest)
    response.headers["cache-control"] = _FOREVER
    return response
