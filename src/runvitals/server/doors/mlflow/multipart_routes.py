"""Files in parts: `mlflow-artifacts/mpu/create`, `complete` and `abort`, and the addresses of the parts.

Clients send files from 500 MB on so, if `MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD` is set. They send the parts
without credentials to the addresses of the response, which are signed.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import secrets
from typing import Final

import msgspec
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from runvitals.server.access.actions import PUBLIC, Action
from runvitals.server.access.identification.authentication import MLFLOW_SIGNED
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import Requester
from runvitals.server.doors.mlflow.artifact_routes import (
    WRITES,
    ArtifactPlace,
    checked_path,
    note_file,
    place_for_writing,
)
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError, invalid
from runvitals.server.doors.mlflow.requests import SentMessage, TheMessage, mlflow_router, to_response
from runvitals.server.doors.signed_paths import UPLOAD_MS, address_in_use, signed_address
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.routes.incoming_file import PIECE_BYTES, Incoming, receive_file
from runvitals.server.http.errors import http_error
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import access_of, door_recorder, received_files
from runvitals.store.files.parts import TooManyUploads, UnknownUpload

MAX_PARTS: Final = 10_000
_ID_BYTES: Final = 16

router: Final = mlflow_router("/api/2.0/mlflow-artifacts/mpu")
addresses: Final = Router()


class PartOfFile(msgspec.Struct):
    """Permission to send a part of a file, which a signed address carries."""

    key: str
    project_id: int
    run_id: int | None
    number: int


@router.post("/create/{path:path}", *WRITES)
def create(request: Request, path: str, sent: TheMessage) -> Response:
    """Begin an upload. The response has an address for each part."""
    number = sent.integer("num_parts") or 1
    if not 1 <= number <= MAX_PARTS:
        raise invalid(f"Invalid value {number} for parameter 'num_parts': expected 1 to {MAX_PARTS:,}")
    artifact = _artifact(request, path, sent)
    upload_id = secrets.token_hex(_ID_BYTES)
    key = _key(upload_id, artifact)
    files = received_files(request)
    with files.space.writing():
        try:
            files.parts.begin(key, _owner(artifact))
        except TooManyUploads as error:
            raise invalid(str(error)) from None
    name = posixpath.basename(artifact.name)
    credentials = [
        {"part_number": part, "headers": {}, "url": _address(request, artifact, key, part, name)}
        for part in range(1, number + 1)
    ]
    return to_response({"upload_id": upload_id, "credentials": credentials})


def _artifact(request: Request, folder: str, sent: SentMessage) -> ArtifactPlace:
    """Return the artifact of a file in a folder. Clients send its path on their machine."""
    name = posixpath.basename(sent.required("path", most=4096).replace("\\", "/"))
    path = f"{folder.rstrip('/')}/{name}"
    checked_path(path)
    return place_for_writing(request, path)


def _key(upload_id: str, artifact: ArtifactPlace) -> str:
    """Return the key of an upload: with the id alone nothing can be written to another place."""
    text = f"{upload_id[:100]}:{artifact.project_id}:{artifact.path}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * _ID_BYTES]


def _owner(place: ArtifactPlace | PartOfFile) -> str:
    """Return whose unfinished upload it is: a run's or, of what is of no run, a project's."""
    return f"project{place.project_id}" if place.run_id is None else str(place.run_id)


def _address(request: Request, artifact: ArtifactPlace, key: str, number: int, name: str) -> str:
    allowed = PartOfFile(key, artifact.project_id, artifact.run_id, number)
    return signed_address(request, "parts", name, allowed, UPLOAD_MS, MLFLOW_SIGNED)


@addresses.put(MLFLOW_SIGNED + "parts/{name:path}", needs(PUBLIC), include_in_schema=False)
async def receive(request: Request, name: str) -> Response:
    """Keep a part. It is on the disk when the response is sent. A part can be sent again."""
    files = received_files(request)
    try:
        part = await run_in_threadpool(_check_address, request)
        with door_recorder(request).in_flight(2 * PIECE_BYTES):
            async with receive_file(request, files, run_id=part.run_id) as incoming:
                md5 = await run_in_threadpool(_add_part, files, part, incoming)
    except HttpRejection as error:
        raise http_error(error) from None
    return Response(status_code=200, headers={"etag": f'"{md5}"'})


def _check_address(request: Request) -> PartOfFile:
    """Raise 403 unless an address is valid and its requester may still use it."""
    part, requester = address_in_use(request, PartOfFile)
    if not _may_write(request, requester, part):
        raise HttpRejection(403, "whoever asked for this address may not write there any more")
    return part


def _may_write(request: Request, requester: Requester, part: PartOfFile) -> bool:
    access = access_of(request)
    if isinstance(requester.principal, Operator):
        return True
    if part.run_id is not None:
        return access.directory.may_add_to(requester.principal, part.run_id)
    return access.may(requester, Action.ARTIFACT_CREATE, access.directory.project(part.project_id))


def _add_part(files: ReceivedFiles, part: PartOfFile, incoming: Incoming) -> str:
    md5 = base64.b64decode(incoming.md5).hex()
    try:
        files.parts.add(part.key, _owner(part), part.number, incoming.path, md5)
    except UnknownUpload as error:
        raise HttpRejection(404, str(error)) from None
    return md5


@router.post("/complete/{path:path}", *WRITES)
def complete(request: Request, path: str, sent: TheMessage) -> Response:
    """Join the parts: the file is on the disk when the response is sent. The request can be repeated."""
    artifact = _artifact(request, path, sent)
    key = _key(sent.required("upload_id", most=100), artifact)
    etags = _etags(sent)
    files = received_files(request)
    if files.parts.is_finished(key, _owner(artifact)):
        return to_response({})
    try:
        size = files.parts.sizes(key, _owner(artifact), etags)
    except UnknownUpload as error:
        raise MlflowError(RESOURCE_DOES_NOT_EXIST, str(error)) from None
    except ValueError as error:
        raise invalid(f"Invalid parts: {error}") from None
    joined_path = files.begin(size, artifact.run_id, is_artifact=True)
    try:
        with files.space.writing():
            joined = files.parts.join(key, _owner(artifact), list(etags), joined_path)
            files.keep(
                joined_path,
                joined.sha256,
                joined.size,
                lambda file: note_file(request, artifact, file),
                files.place_of_project(artifact.project_id),
            )
    finally:
        files.end(joined_path)
    files.parts.finish(key, _owner(artifact))
    return to_response({})


def _etags(sent: SentMessage) -> dict[int, str]:
    """Return the MD5s of the parts, by their numbers."""
    parts = sent.objects("parts")
    if not 1 <= len(parts) <= MAX_PARTS:
        raise invalid(f"Invalid value for parameter 'parts': expected 1 to {MAX_PARTS:,} parts")
    etags: dict[int, str] = {}
    for part in parts:
        message = SentMessage(part)
        number = message.integer("part_number")
        if number is None or number <= max(etags, default=0):
            raise invalid("Invalid value for parameter 'parts': expected part numbers in ascending order")
        etags[number] = message.required("etag", most=100).strip('"')
    return etags


@router.post("/abort/{path:path}", *WRITES)
def abort(request: Request, path: str, sent: TheMessage) -> Response:
    """Remove an upload with its parts. One that does not exist is no error."""
    artifact = _artifact(request, path, sent)
    key = _key(sent.required("upload_id", most=100), artifact)
    received_files(request).parts.end(key, _owner(artifact))
    return to_response({})
