"""`POST /graphql`."""

from __future__ import annotations

from typing import Final

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from runvitals.server.access.permission import needs
from runvitals.server.doors.bodies import read_body
from runvitals.server.doors.recording import door_recorder
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.executor import (
    GraphQLAnswer,
    GraphQLExecutor,
    InvalidArgument,
    decoded_request,
    errors_body,
)
from runvitals.server.doors.wandb.schema import wandb_schema
from runvitals.server.ingest.errors import HttpRejection

router: Final = APIRouter()
_EXECUTOR: Final = GraphQLExecutor(wandb_schema())
_encode: Final = msgspec.json.Encoder().encode


# Each operation checks what the requester may do: the path names nothing.
@router.post("/graphql", include_in_schema=False, dependencies=[needs("filtered run:read")])
async def graphql(request: Request) -> Response:
    """Execute a GraphQL operation of a wandb client."""
    recorder = door_recorder(request)
    try:
        with recorder.in_flight() as in_flight:
            wanted = decoded_request(await read_body(request, recorder, in_flight))
            answer = await _EXECUTOR.execute(wanted, GraphQLContext(request))
    except InvalidArgument as error:
        answer = GraphQLAnswer(errors_body(str(error)), 400)
    except HttpRejection as error:
        answer = GraphQLAnswer(errors_body(error.text), error.status, error.retry_after_s)
    return _response(answer)


def _response(answer: GraphQLAnswer) -> Response:
    headers = {} if answer.retry_after_s is None else {"retry-after": str(answer.retry_after_s)}
    return Response(_encode(answer.body), answer.status, headers, "application/json")
