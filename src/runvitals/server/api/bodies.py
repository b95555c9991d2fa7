"""What the bodies of all requests, and of all responses, have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ResponseBody(BaseModel):
    """The body of a response. It has all its fields, also those with a default."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
