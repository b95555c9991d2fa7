"""Bases of the bodies of all requests and responses."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model


class RequestBody(BaseModel):
    """The body of a request, or a part of one. A field that it does not name is an error."""

    model_config = ConfigDict(extra="forbid")


class ResponseBody(BaseModel):
    """The body of a response, or a part of one. It can be made of a row that has its fields.

    It has all its fields, also those with a default.
    """

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


def page_body(name: str, about: str, **items: Any) -> type[ResponseBody]:
    """Return the body of a page of a list: its items, `total`, and `next`: the cursor of the next page.

    Args:
        name: of the body in the documentation of the API.
        about: what is in the list.
        items: the name of the items, and the type of the list.

    Example:
        >>> RolesPage = page_body("RolesPage", "A page of roles, by name.", roles=list[str])
        >>> RolesPage(roles=["viewer"], total=2, next="1").model_dump()
        {'roles': ['viewer'], 'total': 2, 'next': '1'}
    """
    ((plural, listed),) = items.items()
    fields: dict[str, Any] = {plural: (listed, ...), "total": (int, ...), "next": (str | None, ...)}
    return create_model(name, __base__=ResponseBody, __doc__=about, **fields)


class ErrorAnswer(ResponseBody):
    """Why a request failed."""

    error: str = Field(description="What is wrong, where, and what is allowed.")
