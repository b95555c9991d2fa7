"""Files of a run: clients ask for addresses, and upload to them."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from runvitals.base.numbers import parse_integer
from runvitals.model import media
from runvitals.model.names import key_fault
from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.identification.authentication import WANDB_SIGNED
from runvitals.server.access.permission import needs
from runvitals.server.doors.signed_paths import RUN_FILE_MS, address_in_use, signed_address
from runvitals.server.doors.wandb.context import GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.file_facts import decoding_bytes, facts_of_file, table_item
from runvitals.server.doors.wandb.file_stream import writers_of
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_writers import MONITOR
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.routes.incoming_file import PIECE_BYTES, Incoming, receive_file
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.http.errors import http_error
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.router import Router
from runvitals.server.runs.storage.media import StoredMedia
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.service_parameters import door_recorder, received_files

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

UPLOADS: Final = Resolvers("uploads")
CLIENT_HEADER: Final = "x-wandb-client-id"
_MAX_FILES: Final = 1000
_MAX_LENGTH: Final = 1 << 40
_RANDOM_BITS: Final = 20


router: Final = Router()


class FileOfRun(msgspec.Struct):
    """Permission to upload the file of this name to a run, which a signed address carries.

    Args:
        writer_id: the writer under which the file is recorded.
        host: the machine of the client.
    """

    run_id: int
    writer_id: int
    host: str
    name: str


@UPLOADS.field("Mutation", "createRunFiles")
async def create_run_files(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Return addresses to which the client uploads files of a run."""
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
        return [
            {"name": name, "uploadUrl": _address(context.request, FileOfRun(run_id, writer_id, host, name))}
            for name in names
        ]

    files = await run_in_threadpool(addresses)
    return {"runID": node_id("Run", run_id), "uploadHeaders": [], "files": files}


@UPLOADS.field("Mutation", "markRunFilesUploaded")
async def mark_run_files_uploaded(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Do nothing: files are known as soon as they have arrived."""
    return {"success": True}


def _address(request: Request, upload: FileOfRun) -> str:
    name = upload.name.rpartition("/")[2]
    return signed_address(request, "run-files", name, upload, RUN_FILE_MS)


def _name_fault(name: str) -> str | None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name.startswith("/"):
        return f"invalid name of a file {name[:100]!r}: expected a path within the run"
    fault = key_fault(name)
    return None if fault is None else f"invalid name of a file: {fault}"


@router.put(WANDB_SIGNED + "run-files/{name:path}", needs(PUBLIC), include_in_schema=False)
async def receive(request: Request, name: str) -> Response:
    """Keep the file that a request uploads. It is on the disk when the response is sent."""
    context = GraphQLContext(request)
    files = received_files(request)
    recorder = door_recorder(request)
    try:
        upload = await run_in_threadpool(_check_address, request, context)
        announced = parse_integer(request.headers.get("content-length", ""), _MAX_LENGTH) or 0
        # Check before the file arrives: a client that is refused later sends the whole file again.
        with recorder.in_flight(2 * PIECE_BYTES + decoding_bytes(upload.name, announced)) as in_flight:
            async with receive_file(request, files, run_id=upload.run_id) as incoming:
                in_flight.reserve(2 * PIECE_BYTES + decoding_bytes(upload.name, incoming.size))
                await run_in_threadpool(_keep, context, files, upload, incoming)
    except HttpRejection as error:
        raise http_error(error) from None
    return Response(status_code=200)


def _check_address(request: Request, context: GraphQLContext) -> FileOfRun:
    """Raise 403 unless an address is valid and its run takes files from its owner."""
    upload, requester = address_in_use(request, FileOfRun)
    if not context.access.directory.may_add_to(requester.principal, upload.run_id):
        raise HttpRejection(403, "whoever asked for this address may not log to the run any more")
    return upload


def _keep(context: GraphQLContext, files: ReceivedFiles, upload: FileOfRun, incoming: Incoming) -> None:
    """Keep a file that has arrived, with what it says about the run."""
    store, now_ms = context.metadata_store, context.now_ms()
    path, size, _, sha256 = incoming
    facts = facts_of_file(upload.name, path, size)
    table = table_item(upload.name, path, size)
    items: list[dict[str, Any]] = []

    def note(file: StoredFile) -> None:
        store.stored_files.add(upload.run_id, file, now_ms)
        items.append({"sha256": file.sha256, "bytes": file.bytes, "type": file.media_type})

    keep_at = files.place_of_run(upload.run_id)
    files.keep(path, sha256, size, note, keep_at)
    if table is not None:
        content, item = table
        _keep_content(files, content, note, keep_at)
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


def _keep_content(
    files: ReceivedFiles, content: bytes, note: Callable[[StoredFile], None], storage_id: int
) -> None:
    path = files.begin(len(content))
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        files.keep(path, hashlib.sha256(content).hexdigest(), len(content), note, storage_id)
    finally:
        files.end(path)
