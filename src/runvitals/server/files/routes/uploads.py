"""Uploads of the files of runs: `POST /runs/{run}/files` and `PUT /runs/{run}/files/{sha256}`.

A file is sent in pieces. A piece that was answered is kept: a client that was interrupted asks how much has
arrived and continues there.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from runvitals.model import small_files
from runvitals.model.limits import PIECE_BYTES, STEP
from runvitals.server.access.permission import needs
from runvitals.server.files.disk_space import FileNotStored
from runvitals.server.files.received_files import ReceivedFiles, UploadState
from runvitals.server.files.reserved_space import FileRejected
from runvitals.server.files.routes.incoming_file import pieces_of
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import DetailedError, http_error
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import CheckedRunId, RunNumber
from runvitals.server.service_parameters import door_recorder, received_files
from runvitals.store.files.uploads import ContentDiffers, WrongOffset

_MAX_FILES = 1000
_HEX = "^[0-9a-f]{64}$"

router = Router(prefix="/api/v1")


class WantedFile(RequestBody):
    """A file that a client has."""

    sha256: str = Field(pattern=_HEX)


class WantedFiles(RequestBody):
    """The files that a client asks about."""

    files: list[WantedFile] = Field(max_length=_MAX_FILES)


class UploadStateSchema(BaseModel):
    """How much of a file has arrived."""

    sha256: str
    offset: int = Field(description="How many bytes have arrived: the next piece begins there.")
    complete: bool = Field(description="The server has the file; nothing more is to be sent.")


class UploadStates(BaseModel):
    """How much of some files has arrived."""

    files: list[UploadStateSchema]


TheFiles = Annotated[ReceivedFiles, Depends(received_files)]
Sha256 = Annotated[str, Path(description="The SHA-256 of the whole file.", pattern=_HEX)]


@router.post("/runs/{run}/files", needs("run:create"), response_model=UploadStates)
def upload_states(run: CheckedRunId, number: RunNumber, sent: WantedFiles, files: TheFiles) -> Any:
    """How much of some files the server has. Files that another run of the project has sent are complete."""
    run_id = files.run_number(run, number)
    states = files.states(run_id, [file.sha256 for file in sent.files])
    return {"files": [state._asdict() for state in states]}


@router.post("/runs/{run}/small-files", needs("run:create"), response_model=UploadStates)
async def upload_small_files(request: Request, run: CheckedRunId, number: RunNumber, files: TheFiles) -> Any:
    """Send many small files in one body: of each its SHA-256 (32 bytes), its size (4 bytes), its content.

    All of them are kept, or none.
    """
    body = await request.body()
    return await run_in_threadpool(_add_small, files, run, number, body)


def _add_small(files: ReceivedFiles, run: str, number: int | None, body: bytes) -> Any:
    """Keep small files, or raise HTTPException: 413, 422 or 503."""
    if len(body) > PIECE_BYTES:
        raise HTTPException(413, f"a body of {len(body)} bytes; at most {PIECE_BYTES} are allowed")
    run_id = files.run_number(run, number)
    try:
        contents = dict(small_files.unpack(body))
        for sha256, content in contents.items():
            if hashlib.sha256(content).hexdigest() != sha256:
                raise ValueError(f"the content of a file does not have the SHA-256 {sha256}")
        files.add_small(run_id, contents)
    except (FileRejected, FileNotStored) as error:
        raise http_error(error) from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return {
        "files": [
            {"sha256": sha256, "offset": len(content), "complete": True}
            for sha256, content in contents.items()
        ]
    }


@router.put("/runs/{run}/files/{sha256}", needs("run:create"), response_model=UploadStateSchema)
async def upload_piece(
    request: Request,
    run: CheckedRunId,
    number: RunNumber,
    sha256: Sha256,
    files: TheFiles,
    offset: Annotated[int, Query(ge=0, le=STEP, description="Where the piece begins.")],
    size: Annotated[int, Query(ge=0, le=STEP, description="The size of the whole file.")],
) -> Any:
    """Send a piece of a file, as it is. The last one completes it.

    It is written as it arrives: of a request that ends early, what has arrived is kept.
    """
    try:
        with door_recorder(request).in_flight(2 * PIECE_BYTES):
            run_id = await run_in_threadpool(files.run_number, run, number)
            with ExitStack() as stack:
                reserved = files.uploading(run_id, sha256, size)
                await run_in_threadpool(stack.enter_context, reserved)
                state: UploadState | None = None
                async for piece in pieces_of(request):
                    state = await run_in_threadpool(files.append, run_id, sha256, size, offset, piece)
                    if state.complete:  # perhaps by another process of the run
                        break
                    offset = state.offset
                if state is None:
                    if offset < size:
                        raise HTTPException(422, "the piece is empty")
                    state = await run_in_threadpool(files.append, run_id, sha256, size, offset, ())
    except HttpRejection as error:
        raise http_error(error) from None
    except WrongOffset as error:
        raise DetailedError(409, str(error), {"offset": error.offset}) from None
    except ContentDiffers as error:
        raise DetailedError(409, str(error), {"offset": 0}) from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    return state._asdict()
