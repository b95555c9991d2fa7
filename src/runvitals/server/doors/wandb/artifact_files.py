"""Files and manifests of artifacts: `PUT` and `GET` at signed addresses, and redirects to them."""

from __future__ import annotations

import base64
import binascii
import json
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Final, TypeVar

import msgspec
from fastapi import HTTPException, Path, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from runvitals.model.artifact_names import MAX_ENTRIES
from runvitals.server.access.actions import Action
from runvitals.server.access.identification.authentication import WANDB_SIGNED
from runvitals.server.access.permission import needs
from runvitals.server.artifacts.storage.artifact_store import ArtifactStore
from runvitals.server.artifacts.storage.rows import Entry, UnknownArtifact
from runvitals.server.doors.signed_paths import DOWNLOAD_MS, address_in_use, signed_address
from runvitals.server.doors.wandb.artifact_nodes import (
    FileOfVersion,
    ManifestOfVersion,
    artifacts_of,
    place_of,
    project_with,
    require,
)
from runvitals.server.doors.wandb.artifact_requests import draft_to_complete, version_for
from runvitals.server.doors.wandb.artifact_writes import FileToSend, ManifestToSend
from runvitals.server.doors.wandb.context import GraphQLContext, node_id, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.run_nodes import find_project
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.routes.bucket_redirect import bucket_redirect
from runvitals.server.files.routes.incoming_file import PIECE_BYTES, Incoming, receive_file
from runvitals.server.http.content_response import content_response
from runvitals.server.http.errors import http_error
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import door_recorder, received_files
from runvitals.server.services import shared_services_of

T = TypeVar("T", bound=msgspec.Struct)
MANIFEST_BYTES: Final = 128 << 20
"""The most bytes of a manifest as sent. One is decoded at a time, in about four times as much memory."""
_NAME: Final = "/{name:path}"
_HEAD: Final = (
    b'{"version":1,"storagePolicy":"wandb-storage-policy-v1","storagePolicyConfig":{"storageLayout":"V2"},'
)
_ENTRIES: Final = 500

router: Final = Router()
_decoding: Final = threading.Lock()


class _SentEntry(msgspec.Struct):
    digest: str
    size: int | None = None
    ref: str | None = None
    birthArtifactID: str | None = None
    extra: dict[str, Any] | None = None


class _SentManifest(msgspec.Struct):
    contents: dict[str, _SentEntry]
    version: int = 1


_decoder: Final = msgspec.json.Decoder(_SentManifest)


# Sending


@router.put(WANDB_SIGNED + "artifact-file" + _NAME, needs("public"), include_in_schema=False)
async def put_file(request: Request, name: str) -> Response:
    """Take the content of a file. It is on the disk when the response is sent."""
    allowed = await run_in_threadpool(_file_to_send, request)
    files = _files(request)
    contents = _artifacts(request).contents
    clock = shared_services_of(request).access.clock

    def keep(incoming: Incoming) -> None:
        if incoming.md5 != allowed.digest:
            raise HttpRejection(
                400, f"the content has the MD5 {incoming.md5}, not {allowed.digest} as announced"
            )
        files.keep(
            incoming.path,
            incoming.sha256,
            incoming.size,
            lambda file: contents.add(allowed.project_id, allowed.digest, file, clock()),
            files.place_of_project(allowed.project_id),
        )

    return await _receive(request, files, keep)


@router.put(WANDB_SIGNED + "artifact-manifest" + _NAME, needs("public"), include_in_schema=False)
async def put_manifest(request: Request, name: str) -> Response:
    """Take the manifest of a draft."""
    allowed = await run_in_threadpool(_manifest_to_send, request)
    files, artifacts = _files(request), _artifacts(request)

    def store(incoming: Incoming) -> None:
        if allowed.digest is not None and incoming.md5 != allowed.digest:
            raise HttpRejection(400, f"the manifest has the MD5 {incoming.md5}, not {allowed.digest}")
        with _decoding:
            _store_manifest(artifacts, allowed.version_id, incoming.path)

    return await _receive(request, files, store, MANIFEST_BYTES)


def _file_to_send(request: Request) -> FileToSend:
    allowed, who = _read_address(request, FileToSend)
    require(who, Action.ARTIFACT_CREATE, project_with(who, allowed.project_id, "", None))
    return allowed


def _manifest_to_send(request: Request) -> ManifestToSend:
    allowed, who = _read_address(request, ManifestToSend)
    try:
        draft_to_complete(who, allowed.version_id)
    except InvalidArgument as error:
        raise HTTPException(409, str(error)) from None
    return allowed


async def _receive(
    request: Request, files: ReceivedFiles, use: Any, most_bytes: int | None = None
) -> Response:
    """Return the response to a file, after `use` of it in a thread."""
    recorder = door_recorder(request)
    try:
        with recorder.in_flight(2 * PIECE_BYTES):
            async with receive_file(request, files, most_bytes) as incoming:
                await run_in_threadpool(use, incoming)
    except HttpRejection as error:
        headers = {} if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
        return Response(error.text, error.status, headers, "text/plain")
    return Response(status_code=200)


def _store_manifest(artifacts: ArtifactStore, version_id: int, path: str) -> None:
    """Store the manifest of a version.

    Raises:
        HttpRejection: 400: it is no manifest, or has an entry that is not valid.
    """
    try:
        with open(path, "rb") as file:
            body = file.read()
        if body.count(b'"digest"') > MAX_ENTRIES:  # before they are decoded, all at once
            raise HttpRejection(400, f"more than {MAX_ENTRIES:,} entries in a manifest")
        sent = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HttpRejection(400, f"the body is no manifest of an artifact: {error}") from None
    if sent.version != 1:
        raise HttpRejection(400, f"a manifest of version {sent.version}; expected 1")
    try:
        artifacts.entries.put(version_id, _entries(sent))
    except UnknownArtifact as error:
        raise HttpRejection(404, str(error)) from None
    except ValueError as error:
        raise HttpRejection(400, str(error)) from None


def _entries(sent: _SentManifest) -> Iterator[Entry]:
    for path, entry in sent.contents.items():
        birth = _birth(entry.birthArtifactID)
        yield Entry(path, entry.digest, entry.size, entry.ref, birth, entry.extra)


def _birth(id: str | None) -> int | None:
    """Return the number of the version that had a file first, as far as it is one of ours."""
    try:
        return None if id is None else number_of("Artifact", id)
    except InvalidArgument:
        return None


# Reading


@router.get(WANDB_SIGNED + "artifact-file" + _NAME, needs("public"), include_in_schema=False)
def get_file(request: Request, name: str) -> Response:
    """Return a file of a version, or the range of it that is requested."""
    allowed, who = _read_address(request, FileOfVersion)
    _require_of_version(who, allowed.version_id, Action.ARTIFACT_DOWNLOAD)
    entry = _artifacts(request).entries.get(allowed.version_id, allowed.path)
    stored = None if entry is None else entry.stored
    if (elsewhere := bucket_redirect(_files(request), stored)) is not None:
        return elsewhere
    content = None if stored is None else _files(request).open_file(stored)
    if stored is None or content is None:
        raise HTTPException(404, f"the artifact has no file {allowed.path!r} any more")
    who.metadata_store.read_days.note_version(allowed.version_id, who.now_ms())
    return content_response(request, content, stored.sha256, name)


def _require_of_version(who: GraphQLContext, version_id: int, action: Action) -> None:
    """Raise unless whoever asked for an address may do this with a version.

    Through its own project, or that of a portfolio which has it.

    Raises:
        HTTPException: 404: it is no draft any more or not yet committed; 401, 403 or 404.
    """
    artifacts = artifacts_of(who)
    try:
        version = artifacts.versions.get(version_id)
    except UnknownArtifact as error:
        raise HTTPException(404, str(error)) from None
    if version.state != "committed":
        state = "deleted" if version.state == "deleted" else "not complete yet"
        raise HTTPException(404, f"the artifact is {state}")
    require(who, action, place_of(who, version, action), version_id)


@router.get(WANDB_SIGNED + "artifact-manifest" + _NAME, needs("public"), include_in_schema=False)
def get_manifest(request: Request, name: str) -> Response:
    """Return the manifest of a version, written in parts."""
    allowed, who = _read_address(request, ManifestOfVersion)
    _require_of_version(who, allowed.version_id, Action.ARTIFACT_READ)
    return StreamingResponse(
        _manifest(_artifacts(request), allowed.version_id), media_type="application/json"
    )


def _manifest(artifacts: ArtifactStore, version_id: int) -> Iterator[bytes]:
    yield _HEAD + b'"contents":{'
    entry_texts: list[str] = []
    first = True
    for entry in artifacts.entries.all(version_id):
        entry_json: dict[str, Any] = {"digest": entry.digest}
        if entry.bytes is not None:
            entry_json["size"] = entry.bytes
        if entry.reference is not None:
            entry_json["ref"] = entry.reference
        else:
            entry_json["birthArtifactID"] = node_id("Artifact", entry.birth_id or version_id)
        if entry.extra:
            entry_json["extra"] = entry.extra
        entry_texts.append(f"{json.dumps(entry.path)}:{json.dumps(entry_json)}")
        if len(entry_texts) >= _ENTRIES:
            yield (("" if first else ",") + ",".join(entry_texts)).encode("ascii")
            entry_texts, first = [], False
    yield (("" if first or not entry_texts else ",") + ",".join(entry_texts)).encode("ascii") + b"}}"


@router.get(
    "/artifactsV2/{region}/{entity}/{project}/{collection}/{birth}/{digest}" + _NAME,
    needs("artifact:download"),
    include_in_schema=False,
)
def redirect_to_file(
    request: Request,
    entity: str,
    project: str,
    collection: str,
    birth: str,
    digest: Annotated[str, Path(pattern="^[0-9a-f]{32}$")],
    name: str,
) -> Response:
    """Return the address of a file of an artifact by its digest, for clients that open a single one."""
    project_node = find_project(GraphQLContext(request), project, entity)
    if project_node is None:
        raise HTTPException(404, f"there is no project {project!r}")
    return _redirect(request, project_node.number, digest, collection, name, _birth(birth))


# Clients up to 0.22 name no project: it is that of the version which had the file first.
@router.get(
    "/artifactsV2/{region}/{entity}/{birth}/{digest}",
    needs("filtered artifact:download"),
    include_in_schema=False,
)
def redirect_to_old_address(
    request: Request, birth: str, digest: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
) -> Response:
    """Return the address of a file of an artifact by its digest and the version that had it first."""
    context = GraphQLContext(request)
    try:
        row = version_for(context, birth, Action.ARTIFACT_DOWNLOAD)
    except InvalidArgument as error:
        raise HTTPException(404, str(error)) from None
    return _redirect(request, row.collection.project_id, digest, None, digest, row.id)


def _redirect(
    request: Request, project_id: int, digest: str, collection: str | None, name: str, birth: int | None
) -> Response:
    """Return a redirect to the address of a file.

    Args:
        birth: the version that had the file first. Contents that runs of our own have sent are found by it:
            their digests were not checked, so a project does not have them by their digests.
    """
    md5 = base64.b64encode(binascii.unhexlify(digest)).decode("ascii")
    artifacts = _artifacts(request)
    entry = artifacts.entries.with_digest(project_id, md5, collection)
    if entry is None and birth is not None:
        memberships = artifacts.collections.memberships([birth])[birth]
        path = artifacts.entries.in_version(birth, md5)
        if path is not None and any(
            membership.collection.project_id == project_id for membership in memberships
        ):
            entry = birth, path
    if entry is None:
        raise HTTPException(404, f"there is no artifact with a file of the MD5 {digest}")
    address = signed_address(
        request, "artifact-file", name.rpartition("/")[2], FileOfVersion(*entry), DOWNLOAD_MS
    )
    return RedirectResponse(address, 307)


def _read_address(request: Request, kind: type[T]) -> tuple[T, GraphQLContext]:
    """Return the permission in a request's address, and who asked for it. Reads the database.

    Raises:
        HTTPException: 403.
    """
    try:
        allowed, requester = address_in_use(request, kind)
    except HttpRejection as error:
        raise http_error(error) from None
    return allowed, GraphQLContext(request, requester)


def _files(request: Request) -> ReceivedFiles:
    return received_files(request)


def _artifacts(request: Request) -> ArtifactStore:
    return shared_services_of(request).access.metadata_store.artifacts
