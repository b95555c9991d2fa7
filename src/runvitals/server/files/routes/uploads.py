"""Uploads of the files of runs: `POST /runs/{run}/files` and `PUT /runs/{run}/files/{sha256}`.

A file is sent in pieces. A piece that was answered is kept: a client that was interrupted asks how much has
arrived and continues there.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from runvitals.model.limits import PIECE_BYTES, STEP
from runvitals.server.access.permission import needs
from runvitals.server.files.received_files import FileRejected, ReceivedFiles, UploadState
from runvitals.server.health.disk_space import FileNotStored
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import DetailedError, http_error
from runvitals.server.http.router import Router
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.routes.parameters import CheckedRunId, RunNumber
from runvitals.server.services import shared_services_of
from runvitals.store.files.uploads import ContentDiffers, WrongOffset

_MAX_FILES = 1000
_HEX = "^[0-9a-f]{64}$"

router = Router(prefix="/api/v1")


class WantedFile(RequestBody):
    sha256: str = Field(pattern=_HEX)


class WantedFiles(RequestBody):
    files: list[WantedFile] = Field(max_length=_MAX_FILES)


class UploadStateSchema(BaseModel):
    sha256: str
    offset: int = Field(description="How many bytes have arrived: the next piece begins there.")
    complete: bool = Field(description="The server has the file; nothing more is to be sent.")


class UploadStates(BaseModel):
    files: list[UploadStateSchema]


class ServerFiles:
    """What the routes of uploads work with."""

    def __init__(self, files: ReceivedFiles, metadata_store: MetadataStore) -> None:
        self.files = files
        self._metadata_store = metadata_store

    def run_number(self, uid: str, number: int | None) -> int:
        """The number of a run. The check of the permission has looked it up, on a server with accounts.

        Raises:
            HTTPException: 404 if there is no such run.
        """
        if number is None:
            places = self._metadata_store.runs.places(uid)
            number = places[0].run_id if places else None
        if number is None:
            raise HTTPException(404, f"there is no run {uid!r}: send an envelope of it first")
        return number


def server_files(request: Request) -> ServerFiles:
    """The files of the application.

    Raises:
        HTTPException: 404 on a server that keeps none.
    """
    files = shared_services_of(request).uploads
    if files is None:
        raise HTTPException(404, "this server keeps no files")
    return files


TheServerFiles = Annotated[ServerFiles, Depends(server_files)]
Sha256 = Annotated[str, Path(description="The SHA-256 of the whole file.", pattern=_HEX)]


@router.post("/runs/{run}/files", response_model=UploadStates, dependencies=[needs("run:create")])
def upload_states(run: CheckedRunId, number: RunNumber, wanted: WantedFiles, server: TheServerFiles) -> Any:
    """How much of some files the server has. Files that another run of the project has sent are complete."""
    run_id = server.run_number(run, number)
    states = server.files.states(run_id, [file.sha256 for file in wanted.files])
    return {"files": [state._asdict() for state in states]}


@router.put(
    "/runs/{run}/files/{sha256}", response_model=UploadStateSchema, dependencies=[needs("run:create")]
)
async def upload_piece(
    request: Request,
    run: CheckedRunId,
    number: RunNumber,
    sha256: Sha256,
    server: TheServerFiles,
    offset: Annotated[int, Query(ge=0, le=STEP, description="Where the piece begins.")],
    size: Annotated[int, Query(ge=0, le=STEP, description="The size of the whole file.")],
) -> Any:
    """Send a piece of a file, as it is. The last one completes it."""
    piece = await request.body()
    state = await run_in_threadpool(_append, server, run, number, sha256, size, offset, piece)
    return state._asdict()


def _append(
    server: ServerFiles, run: str, number: int | None, sha256: str, size: int, offset: int, piece: bytes
) -> UploadState:
    """Raises:
    HTTPException: 409 with the offset of the next piece, 413, 422 or 503.
    """
    if len(piece) > PIECE_BYTES:
        raise HTTPException(413, f"a piece of {len(piece)} bytes; at most {PIECE_BYTES} are allowed")
    if not piece and offset < size:
        raise HTTPException(422, "the piece is empty")
    run_id = server.run_number(run, number)
    try:
        return server.files.append(run_id, sha256, size, offset, piece)
    except (FileRejected, FileNotStored) as error:
        raise http_error(error) from None
    except WrongOffset as error:
        raise DetailedError(409, str(error), {"offset": error.offset}) from None
    except ContentDiffers as error:
        raise DetailedError(409, str(error), {"offset": 0}) from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
