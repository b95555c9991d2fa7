"""The names of schemas in the OpenAPI document, from which generators make the classes of clients.

A class of `models` that shows an object of the same name is called `…Schema` in the code. The document, which
has no such objects, uses the plain name.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

_SUFFIX = "Schema"
_PREFIX = "#/components/schemas/"


def use_plain_names(app: FastAPI) -> None:
    """Remove the suffix from the names of schemas in the application's OpenAPI document."""
    document = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            plain_document = _with_plain_references(document())
            schemas = plain_document.get("components", {}).get("schemas", {})
            for name in [name for name in schemas if name.endswith(_SUFFIX)]:
                plain = name.removesuffix(_SUFFIX)
                if plain in schemas:
                    raise ValueError(f"{name} and another schema would both be called {plain}")
                schemas[plain] = {**schemas.pop(name), "title": plain}
            app.openapi_schema = plain_document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own documentation has it


def _with_plain_references(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_plain_references(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: item.removesuffix(_SUFFIX)
        if name == "$ref" and isinstance(item, str) and item.startswith(_PREFIX)
        else _with_plain_references(item)
        for name, item in value.items()
    }
