"""The OpenAPI document of an application."""

from __future__ import annotations

import asyncio

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from runvitals.server.http.api_document import ApiDocument, with_plain_names


class Disk(BaseModel):
    bytes: int


class DiskSchema(BaseModel):
    name: str


class DiskPage(BaseModel):
    disk: DiskSchema


def document(model: type[BaseModel]) -> dict[str, object]:
    app = FastAPI()
    app.add_api_route("/disk", lambda: None, response_model=model)
    schemas: dict[str, object] = with_plain_names(app.openapi())["components"]["schemas"]
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


def test_requests_that_come_at_once_share_one_document() -> None:
    api_document = ApiDocument(FastAPI(title="disks"))
    computed: list[str] = []
    api_document.add(lambda document: computed.append(document["info"]["title"]))

    async def ask() -> list[bytes]:
        return await asyncio.gather(*(api_document.json() for _ in range(3)))

    first, *others = asyncio.run(ask())
    assert b'"title":"disks"' in first
    assert others == [first, first]
    assert computed == ["disks"]
