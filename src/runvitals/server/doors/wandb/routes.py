"""All routes of this door; GraphQL and the stream of lines are here."""

from __future__ import annotations

from typing import Final

import msgspec
from fastapi import Request
from starlette.responses import JSONResponse, Response

from runvitals.server.access.permission import needs
from runvitals.server.doors.body_reading import read_body
from runvitals.server.doors.wandb import artifact_files, file_reads, uploads
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.executor import (
    GraphQLExecutor,
    GraphQLResponse,
    InvalidArgument,
    decode_request,
    errors_body,
)
from runvitals.server.doors.wandb.file_stream import FileStreams
from runvitals.server.doors.wandb.schema import wandb_schema
from runvitals.server.http.errors import http_error
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.responses import json_response
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import door_recorder

router: Final = Router()
MAX_BODY_BYTES: Final = 16 << 20
"""Of GraphQL, which has configurations and summaries; `wandb verify` tries 10 MB."""
_EXECUTOR: Final = GraphQLExecutor(wandb_schema())
_STREAMS: Final = FileStreams()
_encode: Final = msgspec.json.Encoder().encode


# Each operation checks what the requester may do: the path names nothing.
@router.post("/graphql", needs("filtered run:read"), include_in_schema=False)
async def graphql(request: Request) -> Response:
    """Execute a GraphQL operation of a wandb client."""
    recorder = door_recorder(request)
    try:
        with recorder.in_flight() as in_flight:
            body = await read_body(request, recorder, in_flight, MAX_BODY_BYTES)
            graphql_request = decode_request(body)
            context = GraphQLContext(request)
            context.follows_viewer = context.services.resuming_clients.begin_request(context.requester)
            response = await _EXECUTOR.execute(graphql_request, context)
    except InvalidArgument as error:
        response = GraphQLResponse(errors_body(str(error)), 400)
    except HttpRejection as error:
        response = GraphQLResponse(errors_body(error.text), error.status, error.retry_after_s)
    return await _response(request, response)


# Checked as an envelope is, by what the key may send to the run.
@router.post(
    "/files/{entity}/{project}/{run}/file_stream", needs("filtered run:create"), include_in_schema=False
)
async def file_stream(request: Request, entity: str, project: str, run: str) -> Response:
    """Store lines of a run."""
    try:
        return JSONResponse(await _STREAMS.store(request, entity, project, run))
    except HttpRejection as error:
        raise http_error(error) from None


async def _response(request: Request, result: GraphQLResponse) -> Response:
    response = await json_response(request, _encode(result.body))
    response.status_code = result.status
    if result.retry_after_s is not None:
        response.headers["retry-after"] = str(result.retry_after_s)
    return response


for _part in (artifact_files, uploads, file_reads):
    router.include_router(_part.router)
