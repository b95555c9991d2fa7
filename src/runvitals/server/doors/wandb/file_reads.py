"""The files that a run saved, as `wandb.Api()` lists and downloads them."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from fastapi import HTTPException, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.base.numbers import parse_integer
from runvitals.base.regular_expressions import finder
from runvitals.model.logged_media import SavedFile
from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.doors.wandb.context import MAX_ID, GraphQLContext, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import (
    RunNode,
    find_project,
    find_run,
    iso_time,
    project_of,
    run_nodes,
    run_to_change,
)
from runvitals.server.http.content_response import content_response
from runvitals.server.http.public_path import base_url
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import OpenedContent, RunView
from runvitals.server.runs.storage.run_rows import RunRow

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

FILE_READS: Final = Resolvers("file_reads")
router: Final = Router()
_MAX_PAGE: Final = 1000
_MAX_PATTERN: Final = 250
_MAX_NUMBER: Final = 2**53
_MAX_RECORDED: Final = 20
_SAVED_FILE: Final = "SavedFile"


@FILE_READS.field("Run", "fileCount")
async def file_count(run: RunNode | Mapping[str, Any], info: Info) -> int:
    """Return how many files the run saved."""
    node = await _readable(run, info.context)
    return len(await _saved_files(info.context, node.row))


@FILE_READS.field("Run", "files")
async def files(
    run: RunNode | Mapping[str, Any],
    info: Info,
    names: list[str] | None = None,
    after: str | None = None,
    first: int | None = None,
    pattern: str | None = None,
) -> dict[str, Any]:
    """Return a page of the files. A name may be a path as the client saved it, such as `./model.pt`."""
    node = await _readable(run, info.context)
    begin = parse_integer(after, _MAX_NUMBER) if after else 0
    if begin is None:
        raise InvalidArgument("invalid after: expected the `endCursor` of a previous page")
    is_wanted = _like(pattern) if pattern and not names else None
    requested = {posixpath.normpath(name) for name in names or ()}
    files = [
        file
        for file in await _saved_files(info.context, node.row)
        if (not requested or file.name in requested) and (is_wanted is None or is_wanted(file.name))
    ]
    page = files[begin : begin + max(1, min(_MAX_PAGE, 50 if first is None else first))]
    end = begin + len(page)
    nodes = [_node(info.context, node, file) for file in page]
    return {
        "edges": [
            {"node": file_node, "cursor": str(begin + index)} for index, file_node in enumerate(nodes, 1)
        ],
        "pageInfo": {
            "endCursor": str(end),
            "hasNextPage": end < len(files),
            "hasPreviousPage": begin > 0,
            "startCursor": None,
        },
    }


@FILE_READS.field("Mutation", "deleteFiles")
async def delete_files(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Delete files of runs: of each run all that are named, or none."""
    context = info.context
    sent = input["files"]
    if len(sent) > _MAX_PAGE:
        raise InvalidArgument(f"{len(sent):,} files; expected at most {_MAX_PAGE:,}")
    names_of: dict[int, list[str]] = {}
    for text in sent:
        number, name = _named_file(text)
        names_of.setdefault(number, []).append(name)
    await run_in_threadpool(_delete, context, names_of)
    return {"success": True, "clientMutationId": input.get("client_mutation_id")}


def _delete(context: GraphQLContext, names_of: Mapping[int, list[str]]) -> None:
    """Delete files by the number of their run, if the requester may change all of these runs."""
    for number in names_of:
        run_to_change(context, number, Action.RUN_UPDATE)
    for number, names in names_of.items():
        missing = context.metadata_store.media.remove_named_files(number, names)
        if missing:
            raise InvalidArgument(f"the run has no file {missing[0][:200]!r}")
        deleted = [f"{name} (deleted)" for name in names[:_MAX_RECORDED]]
        context.services.changes.record_of_run(context.requester, number, "run.update", {"fields": deleted})


def _named_file(text: str) -> tuple[int, str]:
    """Return the number of the run and the name in the id of a file."""
    try:
        kind, number, name = base64.b64decode(text, validate=True).decode("utf-8").split(":", 2)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        kind = number = name = ""
    run_number = parse_integer(number, MAX_ID)
    if kind != _SAVED_FILE or run_number is None or not name:
        raise InvalidArgument(f"invalid id {text[:100]!r}: expected that of type File")
    return run_number, name


@router.get(
    "/files/{entity}/{project}/{name}/{file:path}", needs("filtered run:read"), include_in_schema=False
)
async def download(request: Request, entity: str, project: str, name: str, file: str) -> Response:
    """Return the content of a file of a run that the requester may read."""
    context = GraphQLContext(request)

    def readable() -> RunRow | None:
        node = find_project(context, project, entity)
        return None if node is None else find_run(context, node, name)

    row = await run_in_threadpool(readable)
    if row is None:
        raise HTTPException(404, f"there is no run {name!r} in {entity}/{project}")
    library = context.services.library
    opened = await library.open(row.uid, row.id)

    def content(view: RunView) -> tuple[SavedFile, OpenedContent] | None:
        for saved in view.saved_files():
            if saved.name == file and (opened_content := view.content(saved.sha256)) is not None:
                return saved, opened_content
        return None

    result = await opened.use(content, quick=True)
    if result is None:
        raise HTTPException(404, f"the run {name!r} has no file {file!r}")
    saved, opened_content = result
    return await run_in_threadpool(
        content_response, request, opened_content, saved.sha256, download=saved.name
    )


async def _readable(run: RunNode | Mapping[str, Any], context: GraphQLContext) -> RunNode:
    """Return a run that the requester may read; mutations and `bucket` return it as an object with its id."""
    if isinstance(run, RunNode):
        return run
    number = number_of("Run", run["id"])

    def read() -> RunNode:
        row = run_to_change(context, number, Action.RUN_READ)
        return run_nodes(context, project_of(context, row), [row], frozenset())[0]

    return await run_in_threadpool(read)


async def _saved_files(context: GraphQLContext, row: RunRow) -> list[SavedFile]:
    return await context.read_run(row, lambda view: view.saved_files(), quick=True)


def _node(context: GraphQLContext, node: RunNode, file: SavedFile) -> dict[str, Any]:
    names = (node.project.entity.name, node.project.name, node.name)
    path = "/".join(quote(part, safe="") for part in names)
    base = base_url(context.request)
    url = f"{base}/files/{path}/{quote(file.name)}"
    return {
        "id": base64.b64encode(f"{_SAVED_FILE}:{node.row.id}:{file.name}".encode()).decode("ascii"),
        "name": file.name,
        "url": url,
        "directUrl": url,
        "sizeBytes": file.bytes,
        "mimetype": file.type,
        "updatedAt": iso_time(file.time_ms),
    }


def _like(pattern: str) -> Callable[[str], bool]:
    """Return whether a name matches a pattern of SQL's LIKE."""
    if len(pattern) > _MAX_PATTERN:
        raise InvalidArgument(f"the pattern is too long; expected at most {_MAX_PATTERN} characters")
    parts = {"%": ".*", "_": "."}
    expression = "".join(parts.get(letter) or re.escape(letter) for letter in pattern)
    try:
        return finder(f"(?s)^{expression}$")
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
