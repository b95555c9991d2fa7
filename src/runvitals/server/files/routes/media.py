"""`/runs/{run}/media` and `/runs/{run}/files`: what a run logged besides numbers, and the files it saved."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response

from runvitals.model.logged_media import SavedFile
from runvitals.server.access.permission import needs, route_check
from runvitals.server.files.routes import media_models
from runvitals.server.http.content_response import content_response, page_response
from runvitals.server.http.listing import MAX_LIMIT, ThePage, numbered_page
from runvitals.server.http.responses import RUN_ERRORS, ErrorResponses, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import MediaSelection, OpenedContent, RunView
from runvitals.server.runs.routes.parameters import StepLimit, TheRun

router = Router(responses=RUN_ERRORS)
Key = Annotated[str, Query(description="The name that it was logged under.", max_length=512)]
Sha256 = Annotated[str, Path(description="The SHA-256 of the file.", pattern="^[0-9a-f]{64}$")]
_FILE: ErrorResponses = {200: {"content": {"application/octet-stream": {}}, "description": "The file."}}


async def opened_content(request: Request, run: TheRun, sha256: Sha256) -> OpenedContent:
    """The file of the path. Who may read a run may not always download the artifacts that it logged.

    Raises:
        HTTPException: 404 if the run has no such file; 403 if it is only in an artifact.
    """
    check = partial(_check_artifact, request)
    content = await run.use(lambda view: view.content(sha256, check), quick=True)
    if content is None:
        raise HTTPException(404, f"the run has no file {sha256}, or it has not arrived yet")
    return content


def _check_artifact(request: Request, project_id: int) -> None:
    access = route_check(request)
    if access is None or access.mode() != "accounts":
        return
    if not access.projects_with_artifacts(request, [project_id], "download"):
        what = "the file of an artifact"
        raise HTTPException(403, f"you may not do this: it needs the permission artifact:download for {what}")


TheContent = Annotated[OpenedContent, Depends(opened_content)]


@router.get("/runs/{run}/media", needs("run:read"), response_model=media_models.MediaKeysPage)
async def media_keys(request: Request, run: TheRun, page: ThePage) -> Response:
    """The names under which the run logged images, tables, histograms and so on."""

    def read(view: RunView) -> bytes:
        return json_bytes(numbered_page("media", view.media_keys(), page, asdict))

    return await json_response(request, await run.use(read, quick=True))


@router.get("/runs/{run}/media/records", needs("run:read"), response_model=media_models.MediaRecordsPage)
async def media_records(
    request: Request,
    run: TheRun,
    key: Key,
    first_step: StepLimit = None,
    last_step: StepLimit = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    after: Annotated[
        str | None, Query(description="`next` of the previous page.", pattern="^[0-9]{1,9}$")
    ] = None,
) -> Response:
    """List the media logged under a name by all processes of the run, by step."""
    skip = int(after or 0)

    def read(view: RunView) -> bytes:
        media = view.media(MediaSelection(key, first_step, last_step, skip, limit))
        end = skip + len(media.records)
        return json_bytes(
            {
                "records": [asdict(record) for record in media.records],
                "total": media.total,
                "next": str(end) if media.records and end < media.total else None,
            }
        )

    return await json_response(request, await run.use(read, quick=True))


@router.get("/runs/{run}/media/steps", needs("run:read"), response_model=media_models.MediaSteps)
async def media_steps(request: Request, run: TheRun, key: Key) -> Response:
    """The steps at which something was logged under a name."""

    def read(view: RunView) -> bytes:
        return json_bytes({"steps": view.media_steps(key)})

    return await json_response(request, await run.use(read, quick=True))


@router.get("/runs/{run}/files", needs("run:read"), response_model=media_models.SavedFilesPage)
async def saved_files(request: Request, run: TheRun, page: ThePage) -> Response:
    """The files that the run saved, by name, each as it was last saved."""

    def read(view: RunView) -> bytes:
        return json_bytes(numbered_page("files", view.saved_files(), page, _shown_file))

    return await json_response(request, await run.use(read, quick=True))


def _shown_file(file: SavedFile) -> dict[str, Any]:
    """Without its path on this machine."""
    return {name: getattr(file, name) for name in media_models.SavedFileSchema.model_fields}


@router.get("/runs/{run}/files/{sha256}", needs("run:read"), response_class=Response, responses=_FILE)
def file_content(
    request: Request,
    sha256: Sha256,
    content: TheContent,
    download: Annotated[
        str | None, Query(description="The name under which to save it.", max_length=1000)
    ] = None,
) -> Response:
    """A file that the run logged or saved."""
    return content_response(request, content, sha256, download)


@router.get("/runs/{run}/files/{sha256}/page", needs("run:read"), response_class=Response, responses=_FILE)
def file_page(request: Request, sha256: Sha256, content: TheContent) -> Response:
    """An HTML file that the run logged, for a frame: its scripts run, and reach nothing."""
    return page_response(request, content, sha256)
