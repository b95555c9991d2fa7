"""The OpenAPI document of an application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool

from runvitals.server.http.responses import json_bytes
from runvitals.server.http.router import lazy_routes

_SUFFIX = "Schema"
_PREFIX = "#/components/schemas/"


class ApiDocument:
    """Describes all routes of an application once, at the first request.

    That takes seconds of CPU, so requests that come meanwhile wait for the same document.

    A class of `models` that shows an object of the same name is called `…Schema` in the code. The document,
    from which generators make the classes of clients, has no such objects and uses the plain name.

    Example:
        >>> app.state.api_document = ApiDocument(app)
        >>> app.state.api_document.add(lambda document: document["paths"].pop("/internal"))
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._additions: list[Callable[[dict[str, Any]], object]] = []
        self._turn = anyio.Lock()
        self._json: bytes | None = None

    def add(self, addition: Callable[[dict[str, Any]], object]) -> None:
        """Describe what is no route, too: `addition` changes the document, after earlier ones."""
        self._additions.append(addition)

    def compute(self) -> dict[str, Any]:
        """Return the document of the routes that the application has now.

        Raises:
            ValueError: two schemas would have the same name.
        """
        app = self._app
        routes = [route.api_route for route in lazy_routes(app.routes)]
        document = with_plain_names(
            get_openapi(title=app.title, version=app.version, description=app.description, routes=routes)
        )
        for addition in self._additions:
            addition(document)
        return document

    async def json(self) -> bytes:
        """Return the document as JSON."""
        async with self._turn:
            if self._json is None:
                self._json = await run_in_threadpool(lambda: json_bytes(self.compute()))
            return self._json


def with_plain_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without the suffix of the names of schemas.

    Raises:
        ValueError: two schemas would have the same name.
    """
    plain_document: dict[str, Any] = _with_plain_references(document)
    schemas = plain_document.get("components", {}).get("schemas", {})
    for name in [name for name in schemas if name.endswith(_SUFFIX)]:
        plain = name.removesuffix(_SUFFIX)
        if plain in schemas:
            raise ValueError(f"{name} and another schema would both be called {plain}")
        schemas[plain] = {**schemas.pop(name), "title": plain}
    return plain_document


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
