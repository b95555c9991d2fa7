"""The names of schemas in the OpenAPI document."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from runvitals.server.http.component_names import use_plain_names


class Disk(BaseModel):
    bytes: int


class DiskSchema(BaseModel):
    name: str


class DiskPage(BaseModel):
    disk: DiskSchema


def document(model: type[BaseModel]) -> dict[str, object]:
    app = FastAPI()
    app.add_api_route("/disk", lambda: None, response_model=model)
    use_plain_names(app)
    schemas: dict[str, object] = app.openapi()["components"]["schemas"]
    return schemas


def test_a_class_of_the_code_has_the_plain_name_of_what_it_shows() -> None:
    schemas = document(DiskPage)
    assert "DiskSchema" not in schemas
    assert "#/components/schemas/Disk'" in str(schemas["DiskPage"])


def test_two_classes_cannot_have_one_name() -> None:
    class Both(BaseModel):
        disk: Disk
        shown: DiskSchema

    with pytest.raises(ValueError, match="both be called Disk"):
        document(Both)
