"""The ingest endpoint in the OpenAPI document: it is no FastAPI route, and described all the same."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import FastAPI

from runvitals.server.api import models
from runvitals.server.ingest.endpoint import PATH
from runvitals.server.ingest.envelope import About, Ack, Number


def _said(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class JsonEnvelope(msgspec.Struct):
    """What one writer sends at once, in JSON."""

    run: Annotated[str, _said("Its id: 1 to 128 of A-Z a-z 0-9 _ . -; made where it is not there.")]
    writer: Annotated[str, _said("Its name within the run, of the same characters.")]
    seq: Annotated[Number | None, _said("(run, writer, seq) names this envelope for ever.")] = None
    project: str | None = None
    about: Annotated[About | None, _said("What is known of the writer.")] = None
    keys: Annotated[list[str] | None, _said("The columns' names.")] = None
    schema: Annotated[Number | None, _said("The number that an earlier answer gave for the keys.")] = None
    t: Annotated[list[int] | None, _said("ms UTC, one a row.")] = None
    v: Annotated[list[list[float | None]] | None, _said("A list for each key; null is a gap.")] = None
    step: Annotated[list[float] | None, _said("One a row: these rows are `log()` calls.")] = None
    records: Annotated[
        list[tuple[Number, str, dict[str, Any]]] | None,
        _said("(number, kind, value), as the journal has them."),
    ] = None


_REFUSALS = {
    "400": "No envelope, or nothing that fits together.",
    "401": "A token is needed, or it is not known.",
    "408": "The body did not arrive in time.",
    "409": "`schema` is not known here: send `keys`.",
    "413": "Too large.",
    "415": "A type or encoding that is not known.",
    "422": "A value out of range.",
    "429": "Too many requests at once: retry after `Retry-After`.",
    "503": "The disk is full or fails: retry after `Retry-After`.",
}


def describe(app: FastAPI) -> None:
    """Add the endpoint to what an application says of itself. Who answers it is not decided here."""
    base = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = base()
            (envelope, ack), parts = msgspec.json.schema_components(
                [JsonEnvelope, Ack], ref_template="#/components/schemas/Ingest{name}"
            )
            error = models.ErrorAnswer.model_json_schema()
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas.setdefault("ErrorAnswer", error)
            schemas |= {f"Ingest{name}": part for name, part in parts.items()}
            document["paths"][PATH] = {"post": _operation(envelope, ack)}
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own documentation has it


def _operation(envelope: dict[str, Any], ack: dict[str, Any]) -> dict[str, Any]:
    acks = {"type": "object", "properties": {"acks": {"type": "array", "items": ack}}, "required": ["acks"]}
    refused = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    sent = {"anyOf": [envelope, {"type": "array", "items": envelope, "maxItems": 1000}]}
    return {
        "operationId": "ingest",
        "summary": "Ingest",
        "description": "Takes in what monitors and other clients send: one envelope or a list of them, all "
        "or nothing. Answers 200 when everything is on disk. `application/msgpack` is taken too, and the "
        "content encodings zstd, gzip and deflate; see docs/reference/ingest.md.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": sent}}},
        "responses": {
            "200": {
                "description": "Durable. A list is answered with a list.",
                "content": {"application/json": {"schema": {"anyOf": [ack, acks]}}},
            },
            **{status: {"description": text, "content": refused} for status, text in _REFUSALS.items()},
        },
    }
