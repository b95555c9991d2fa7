"""Describes the ingest endpoint, which is not a FastAPI route, in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from runvitals.server.http.bodies import ErrorAnswer
from runvitals.server.ingest.endpoint import PATH
from runvitals.server.ingest.envelope import Ack, Number, WriterDescription


def _description(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class JsonEnvelope(msgspec.Struct):
    """A batch of samples and records of one writer, in JSON."""

    run: Annotated[str, _description("Run id: 1 to 128 of A-Z a-z 0-9 _ . -; a new run is created.")]
    writer: Annotated[str, _description("Name of the writer within the run, of the same characters.")]
    seq: Annotated[Number | None, _description("(run, writer, seq) identifies this envelope forever.")] = None
    project: str | None = None
    entity: Annotated[
        str | None,
        _description(
            "Team or user that the run belongs to, on a server with accounts; without it: the default of the "
            "key's owner, or the run that the owner has sent to before."
        ),
    ] = None
    about: Annotated[WriterDescription | None, _description("Describes the writer.")] = None
    keys: Annotated[list[str] | None, _description("Keys of the columns.")] = None
    schema: Annotated[Number | None, _description("Number of the keys, from an earlier response.")] = None
    t: Annotated[list[int] | None, _description("Time of each row, ms UTC.")] = None
    v: Annotated[
        list[list[float | None]] | None, _description("A list of values per key; null is a gap.")
    ] = None
    step: Annotated[list[float] | None, _description("Step of each row, if the rows are `log()` calls.")] = (
        None
    )
    records: Annotated[
        list[tuple[Number, str, dict[str, Any]]] | None,
        _description("(number, kind, value), as in the journal."),
    ] = None


_ERRORS = {
    "400": "Invalid envelope.",
    "401": "The token is missing or invalid.",
    "403": "The key may not send this run there.",
    "408": "The body did not arrive in time.",
    "409": "Unknown `schema`: send `keys`.",
    "413": "Too large.",
    "415": "Unknown content type or encoding.",
    "422": "A value out of range.",
    "429": "Too many requests in flight: retry after `Retry-After`.",
    "503": "The data could not be written, for example because the disk is full: retry after `Retry-After`.",
}


def describe(document: dict[str, Any]) -> None:
    """Add the endpoint, which is no route, to an OpenAPI document."""
    (envelope, ack), parts = msgspec.json.schema_components(
        [JsonEnvelope, Ack], ref_template="#/components/schemas/Ingest{name}"
    )
    error = ErrorAnswer.model_json_schema()
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.setdefault("ErrorAnswer", error)
    schemas |= {f"Ingest{name}": part for name, part in parts.items()}
    document["paths"][PATH] = {"post": _operation(envelope, ack)}


def _operation(envelope: dict[str, Any], ack: dict[str, Any]) -> dict[str, Any]:
    acks = {"type": "object", "properties": {"acks": {"type": "array", "items": ack}}, "required": ["acks"]}
    error_content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    sent = {"anyOf": [envelope, {"type": "array", "items": envelope, "maxItems": 1000}]}
    return {
        "operationId": "ingest",
        "summary": "Ingest",
        "description": "Stores an envelope or a list of envelopes, all or none. Responds with 200 when "
        "everything is on disk. Also accepts `application/msgpack` and the content encodings zstd, gzip and "
        "deflate; see docs/reference/ingest.md.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": sent}}},
        "responses": {
            "200": {
                "description": "Durable. The response to a list is a list.",
                "content": {"application/json": {"schema": {"anyOf": [ack, acks]}}},
            },
            **{status: {"description": text, "content": error_content} for status, text in _ERRORS.items()},
        },
    }
