"""Files of a run: clients ask for addresses, and upload to them."""

from __future__ import annotations

import hashlib
import os
import secrets
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import anyio
import anyio.to_thread
from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from runvitals.model import media
from runvitals.model.names import key_fault
from runvitals.model.numbers import parse_integer
from runvitals.server.api.uploads import ServerFiles
from runvitals.server.doors.recording import door_recorder
from runvitals.server.doors.wandb.context import GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.file_facts import facts_of_file, table_item
from runvitals.server.doors.wandb.file_stream import writers_of
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_writers import MONITOR
from runvitals.server.doors.wandb.upload_tokens import LIFE_MS, Upload, UploadTokens
from runvitals.server.received_files import FileRejected
from runvitals.store.metadata import SectionUpdate
from runvitals.store.metadata.media import StoredMedia
from runvitals.store.metadata.stored_files import StoredFile

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

UPLOADS: Final = Resolvers("uploads")
PATH: Final = "/wandb/signed/run-files/"
CLIENT_HEADER: Final = "x-wandb-client-id"
_MAX_FILES: Final = 1000
_MAX_LENGTH: Final = 1 << 40
_BLOCK_BYTES: Final = 1 << 20
_SILENT_S: Final = 30.0
_RANDOM_BITS: Final = 20


@UPLOADS.field("Mutation", "createRunFiles")
async def create_run_files(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Addresses to which the client uploads files of a run."""
    context = info.context
    names: list[str] = input["files"]
    if len(names) > _MAX_FILES:
        raise InvalidArgument(f"{len(names):,} files; at most {_MAX_FILES:,} are allowed in one request")
    for name in names:
        if fault := _name_fault(name):
            raise InvalidArgument(fault)
    client = context.request.headers.get(CLIENT_HEADER, "")
    writers = await run_in_threadpool(
        writers_of, context, input.get("entity_name"), input.get("project_name"), input["run_name"], client
    )
    # Checks that the key may write to the run, and makes sure that the writer exists.
    await door_recorder(context.request).record(context.request.scope, [writers.heartbeat()], 0)
    run_id, host, monitor = writers.client.run_id, writers.client.host, writers.name(MONITOR)

    def addresses() -> list[dict[str, str]]:
        stored = context.metadata_store.writers.of_runs([run_id])[run_id]
        writer_id = next(writer.id for writer in stored if writer.name == monitor)
        tokens = _tokens(context)
        base, until_ms = str(context.request.base_url).rstrip("/"), context.now_ms() + LIFE_MS
        return [
            {
                "name": name,
                "uploadUrl": f"{base}{PATH}{tokens.token(Upload(run_id, writer_id, host, name, until_ms))}",
            }
            for name in names
        ]

    files = await run_in_threadpool(addresses)
    return {"runID": node_id("Run", run_id), "uploadHeaders": [], "files": files}


@UPLOADS.field("Mutation", "markRunFilesUploaded")
async def mark_run_files_uploaded(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Files are known as soon as they have arrived."""
    return {"success": True}


def _name_fault(name: str) -> str | None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name.startswith("/"):
        return f"invalid name of a file {name[:100]!r}: expected a path within the run"
    fault = key_fault(name)
    return None if fault is None else f"invalid name of a file: {fault}"


def _tokens(context: GraphQLContext) -> UploadTokens:
    return UploadTokens(context.access.accounts.cursor_key())


async def receive(request: Request, token: str) -> None:
    """Keep the file that a request uploads.

    Raises:
        HTTPException: 403 if the address is not valid any more, 404 if the server keeps no files, 413 or 507
            if the file is too large.
    """
    context = GraphQLContext(request)
    upload = await run_in_threadpool(lambda: _tokens(context).upload(token, context.now_ms()))
    if upload is None:
        raise HTTPException(403, "this address is not valid, or not any more: request another one")
    server: ServerFiles | None = getattr(context.state, "uploads", None)
    if server is None:
        raise HTTPException(404, "this server keeps no files")
    declared = request.headers.get("content-length", "")
    length = parse_integer(declared, _MAX_LENGTH) or 0
    try:
        path = await run_in_threadpool(server.files.begin, length, upload.run_id)
        try:
            size, sha256 = await _written(request, path, server)
            await anyio.to_thread.run_sync(_keep, context, server, upload, path, size, sha256)
        finally:
            await anyio.to_thread.run_sync(_remove, path)
    except FileRejected as error:
        raise HTTPException(error.status, str(error)) from None


def _remove(path: str) -> None:
    if os.path.exists(path):  # it was not kept
        os.unlink(path)


async def _written(request: Request, path: str, server: ServerFiles) -> tuple[int, str]:
    """Write the body to a file; returns its size and SHA-256."""
    digest, size, most = hashlib.sha256(), 0, server.files.limits.file_bytes
    with open(path, "xb") as file:
        stream, block = request.stream(), bytearray()
        while True:
            with anyio.move_on_after(_SILENT_S) as waiting:
                part = await anext(stream, None)
            if waiting.cancelled_caught:
                raise HTTPException(408, f"nothing arrived for {_SILENT_S:g} s", {"connection": "close"})
            size += len(part or b"")
            if size > most:
                raise FileRejected(413, f"the file has more than {most:,} bytes, the largest size allowed")
            block += part or b""
            if part is None or len(block) >= _BLOCK_BYTES:
                await anyio.to_thread.run_sync(_write, file, digest, bytes(block), part is None)
                block.clear()
            if part is None:
                return size, digest.hexdigest()


def _write(file: BinaryIO, digest: Any, block: bytes, last: bool) -> None:
    digest.update(block)
    file.write(block)
    if last:
        file.flush()
        os.fsync(file.fileno())


def _keep(
    context: GraphQLContext, server: ServerFiles, upload: Upload, path: str, size: int, sha256: str
) -> None:
    """Keep a file that has arrived, with what it says about the run."""
    store, now_ms = context.metadata_store, context.now_ms()
    facts = facts_of_file(upload.name, path, size)
    table = table_item(upload.name, path, size)
    items: list[dict[str, Any]] = []

    def note(file: StoredFile) -> None:
        store.stored_files.add(upload.run_id, file, now_ms)
        items.append({"sha256": file.sha256, "bytes": file.bytes, "type": file.media_type})

    server.files.keep(path, sha256, size, note)
    if table is not None:
        content, item = table
        server.files.keep(*_stored(server, content), note)
        items[-1] = {**items[-1], **item}
    number = now_ms << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    record = StoredMedia(
        upload.run_id, upload.writer_id, number, now_ms, None, upload.name, media.FILE, items
    )
    store.media.add([record])
    store.sections.merge(
        [
            SectionUpdate(upload.run_id, section, values, now_ms, upload.host)
            for section, values in facts.items()
        ]
    )


def _stored(server: ServerFiles, content: bytes) -> tuple[str, str, int]:
    path = server.files.begin(len(content))
    with open(path, "xb") as file:
        _write(file, hashlib.sha256(), content, True)
    return path, hashlib.sha256(content).hexdigest(), len(content)
