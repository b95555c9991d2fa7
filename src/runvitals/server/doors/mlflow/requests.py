"""Requests of MLflow clients, and the routes that answer them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.datastructures import QueryParams
from starlette.responses import Response

from runvitals.model import json_values
from runvitals.server.doors.mlflow.errors import REFUSALS, MlflowError, error_response, invalid
from runvitals.server.doors.mlflow.prefixes import PREFIX
from runvitals.server.http.router import Router

MAX_TEXT: Final = 1 << 20
_INT64: Final = 1 << 63
_NON_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class MlflowRoute(APIRoute):
    """A route whose errors have MLflow's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with errors in MLflow's form."""
        handle = super().get_route_handler()

        async def handle_request(request: Request) -> Response:
            try:
                return await handle(request)
            except (MlflowError, *REFUSALS) as error:
                return error_response(error)

        return handle_request


def mlflow_router(prefix: str = PREFIX) -> Router:
    """Return a router for routes of MLflow's API. Their paths are those of version 2.0."""
    return Router(prefix=prefix, route_class=MlflowRoute, include_in_schema=False)


class SentMessage:
    """The parameters of a request: the JSON object of its body, or its query.

    Unknown names are ignored, as by MLflow. A number may be sent as a text.
    """

    def __init__(self, values: Mapping[str, Any], query: QueryParams | None = None) -> None:
        self.values = values
        self._query = query

    def text(self, name: str, *, most: int = MAX_TEXT) -> str | None:
        """Return a text; None if it was not sent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise wrong_type(name, value, "a string")
        if len(value) > most:
            raise invalid(f"'{name}' exceeds the maximum length of {most} characters")
        return value

    def required(self, name: str, *, most: int = MAX_TEXT) -> str:
        """Return a text that must not be empty."""
        value = self.text(name, most=most)
        if not value:
            raise invalid(f"Missing value for required parameter '{name}'.")
        return value

    def identifier(self, name: str) -> str | None:
        """Return a text, or a number, which some clients send for ids."""
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(name, most=256)

    def required_identifier(self, name: str) -> str:
        """Return an identifier, which may be sent as a number, or raise MlflowError 400."""
        value = self.identifier(name)
        if not value:
            raise invalid(f"Missing value for required parameter '{name}'.")
        return value

    def integer(self, name: str) -> int | None:
        """Return an int64, which may be sent as a text; None if it was not sent."""
        return integer(name, self.values.get(name))

    def flag(self, name: str) -> bool:
        """Return whether a flag is true; false if it was not sent."""
        value = self.values.get(name, False)
        if value in ("true", "True"):
            return True
        return value is True

    def objects(self, name: str) -> list[dict[str, Any]]:
        """Return a list of objects; empty if it was not sent."""
        items = self._list(name)
        for value in items:
            if not isinstance(value, dict):
                raise wrong_type(name, value, "a list of objects")
        return items

    def texts(self, name: str) -> list[str]:
        """Return a list of texts or numbers; empty if it was not sent."""
        if self._query is not None:
            return self._query.getlist(name)
        items = self._list(name)
        for value in items:
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                raise wrong_type(name, value, "a list of strings")
        return [str(value) for value in items]

    def _list(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise wrong_type(name, value, "a list")
        return value


def integer(name: str, value: object) -> int | None:
    """Return an int64, which may be a text, or a float without a fraction."""
    if value is None:
        return None
    if isinstance(value, str) and len(value) < 25 and value.isascii() and "_" not in value:
        try:
            value = int(value)
        except ValueError:
            pass
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
        raise wrong_type(name, value, "an integer")
    return value


def number(name: str, value: object) -> float:
    """Return a number as protocol buffers write it in JSON, where NaN and infinities are texts."""
    if isinstance(value, str):
        if value in _NON_FINITE:
            return _NON_FINITE[value]
        try:
            return float(value[:400] if value.isascii() and "_" not in value else "")
        except ValueError:
            pass
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise wrong_type(name, value, "a number")


def wrong_type(name: str, value: object, expected: str) -> MlflowError:
    """400: a parameter has a value of the wrong type."""
    excerpt = json.dumps(value, ensure_ascii=False, default=repr)[:60]
    return invalid(f"Invalid value {excerpt} for parameter '{name}' supplied. Expected {expected}.")


def json_number(value: float) -> float | str:
    """Return a number for a response: see `number`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def parse_message(body: bytes) -> SentMessage:
    """Return the message in a body.

    Raises:
        MlflowError: it is no JSON object.
    """
    try:
        values = _decode(body) if body else {}
        json_values.check(values)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise MlflowError("BAD_REQUEST", f"the body is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise MlflowError("BAD_REQUEST", "the body is not a JSON object")
    return SentMessage(values)


async def _read_message(request: Request) -> SentMessage:
    if request.method == "GET":
        query = request.query_params
        return SentMessage({name: query[name] for name in query}, query)
    return parse_message(await request.body())


TheMessage = Annotated[SentMessage, Depends(_read_message)]
"""The parameters of a request of a MLflow client."""


def to_response(message: Mapping[str, Any]) -> Response:
    """Return a response with a message."""
    return Response(encode(message), media_type="application/json")
