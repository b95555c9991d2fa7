"""The reference of the HTTP API, from the server's OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from runvitals.server.app import application
from runvitals.server.ingest.openapi import describe
from runvitals.server.library.run_library import Library
from runvitals.server.local_app import local_services

_INTRODUCTION = """\
# HTTP API

All requests and responses, generated from the OpenAPI document that a server provides at
`/api/v1/openapi.json`. [Using the HTTP API](api.md) explains keys, buckets, cursors and event streams;
[Sending samples](ingest.md) explains envelopes.
"""
Schema = dict[str, Any]


def document() -> Schema:
    """The OpenAPI document of a shared server."""
    # The library serves requests; the description needs none.
    app = application(local_services(cast(Library, None)))
    described = app.openapi()
    describe(described)
    return described


def page() -> str:
    """The page in Markdown."""
    described = document()
    lines = [_INTRODUCTION, "## Calls\n"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            lines += _of_call(method.upper(), path, operation)
    lines.append("## Types\n")
    for name, schema in sorted(described["components"]["schemas"].items()):
        if not name.startswith(("HTTPValidation", "ValidationError")):
            lines += _of_type(name, schema)
    return "\n".join(lines) + "\n"


def _of_call(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"### `{method} {path}`\n"
    if operation.get("description"):
        yield f"{operation['description']}\n"
    parameters = operation.get("parameters", [])
    if parameters:
        yield "| Parameter | In | Type | Default | Meaning |"
        yield "|---|---|---|---|---|"
        for parameter in parameters:
            schema = parameter["schema"]
            default = f"`{schema['default']}`" if schema.get("default") not in (None, [], "") else ""
            if parameter.get("required"):
                default = "required"
            meaning = parameter.get("description", schema.get("description", ""))
            cells = (f"`{parameter['name']}`", parameter["in"], _type(schema), default, meaning)
            yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
        yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body, `{kind}`: {_type(content['schema'])}\n"
    errors = []
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            errors.append(f"**{status}** {response['description']}")
            continue
        for kind, content in response.get("content", {}).items():
            schema = content.get("schema")
            yield f"- **{status}**, `{kind}`" + (f": {_type(schema)}" if schema else "")
    if errors:
        yield f"- Errors, as [ErrorAnswer](#type-erroranswer): {' '.join(errors)}"
    yield ""


def _of_type(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name} {{#type-{name.lower()}}}\n"
    if schema.get("description"):
        yield f"{schema['description']}\n"
    properties = schema.get("properties", {})
    if not properties:
        yield f"{_type(schema)}\n"
        return
    required = set(schema.get("required", ()))
    yield "| Field | Type | Meaning |"
    yield "|---|---|---|"
    for field, value in properties.items():
        meaning = value.get("description", "")
        if field not in required:
            meaning = f"{meaning} *(optional)*".strip()
        yield f"| `{field}` | {_cell(_type(value))} | {_cell(meaning)} |"
    yield ""


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#type-{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(_type(part) for part in schema[several])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "&#124;")
