"""What the bodies of all requests, and of all responses, have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ResponseBody(BaseModel):
    """The body of a response, or a part of one. It can be made of a row that has its fields.

    It has all its fields, also those with a default.
    """

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)
