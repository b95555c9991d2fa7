"""Bases of the bodies of all requests and responses."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RequestBody(BaseModel):
    """The body of a request, or a part of one. A field that it does not name is an error."""

    model_config = ConfigDict(extra="forbid")


class ResponseBody(BaseModel):
    """The body of a response, or a part of one. It can be made of a row that has its fields.

    It has all its fields, also those with a default.
    """

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class ErrorAnswer(ResponseBody):
    """Why a request failed."""

    error: str = Field(description="What is wrong, where, and what is allowed.")
