"""Bodies of the API about collections of registries and their versions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from runvitals.server.artifacts.routes.artifact_models import CollectionSchema
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body

Alias = Annotated[str, Field(max_length=256)]
Tag = Annotated[str | None, Query(description="Only what has this tag.", max_length=256)]


class RegistryCollectionSchema(CollectionSchema):
    """A collection of a registry."""

    newest: int | None = Field(description="The number of its newest version.")
    aliases: dict[str, int] = Field(description="Alias → number of a version.")
    owner: str | None = Field(description="Who made it.")
    downloads: int = Field(description="Of all its versions.")


RegistryCollectionsPage = page_body(
    "RegistryCollectionsPage",
    "A page of the collections of a registry.",
    collections=list[RegistryCollectionSchema],
)


class RegistryCollectionDetail(RegistryCollectionSchema):
    """A collection with its description as HTML."""

    description_html: str
    protected_aliases: list[str]


class CollectionChanges(RequestBody):
    """Fields that are left out do not change."""

    name: str | None = Field(None, max_length=256)
    description: str | None = Field(None, max_length=64 * 1024)
    tags: list[Alias] | None = Field(None, max_length=100)


class VersionUser(ResponseBody):
    """A run that used a version."""

    run: str
    run_entity: str | None
    run_project: str | None


class LinkSource(ResponseBody):
    """The artifact that was linked."""

    entity: str | None
    project: str
    name: str
    version: int


class LinkedVersionSchema(ResponseBody):
    """A version in a collection of a registry."""

    collection: str
    version: int
    aliases: list[str]
    tags: list[str]
    properties: dict[str, str] = Field(description="The tags of MLflow's clients that have a value.")
    stage: str = Field(description="As MLflow's clients set it.")
    description: str
    author: str = Field(description="Who linked it; empty if that is not known.")
    created_ms: int = Field(description="When it was linked.")
    downloads: int
    digest: str
    bytes: int
    files: int
    metadata: dict[str, Any]
    run: str | None = Field(description="The run that logged it, if the requester may read it.")
    run_entity: str | None
    run_project: str | None
    source: LinkSource | None = Field(
        description="Null: it is in this registry only, or the requester may not read the project."
    )
    fields: dict[str, str | float] = Field(description="Those of the run that were asked for.")


LinkedVersionsPage = page_body(
    "LinkedVersionsPage", "A page of versions, the newest first.", versions=list[LinkedVersionSchema]
)


class LinkedVersionDetail(LinkedVersionSchema):
    """A version with what its page shows."""

    description_html: str
    card_html: str = Field(description="Its model card, from README.md among its files; empty: it has none.")
    used_by: list[VersionUser] = Field(
        description="The runs that used it, as far as the requester may read them."
    )
    mlflow_name: str = Field(description="As MLflow's clients name the collection.")


class LinkedVersionChanges(RequestBody):
    """Fields that are left out do not change."""

    description: str | None = Field(None, max_length=64 * 1024)
    add_tags: list[Alias] = Field([], max_length=100)
    remove_tags: list[Alias] = Field([], max_length=100)
    properties: dict[Annotated[str, Field(max_length=250)], Annotated[str, Field(max_length=5000)] | None] = (
        Field({}, max_length=100, description="Null removes one.")
    )


class NewRegistryLink(RequestBody):
    """A version of an artifact that is to be linked."""

    artifact: str = Field(
        max_length=600, description="`team/project/name`, or `project/name` in the team of the registry."
    )
    version: str = Field("latest", max_length=256, description="`v3` or an alias.")
    aliases: list[Alias] = Field([], max_length=100)


class AliasTarget(RequestBody):
    """The version that is to have an alias."""

    version: int | str = Field(description="Its number, `v3`, or an alias that it has.")


class AliasChange(ResponseBody):
    """A change of an alias, or of the versions of a collection."""

    time_ms: int
    action: str = Field(description="`registry.alias`, `registry.link` or `registry.unlink`.")
    actor: str
    alias: str | None
    version: int | None = Field(description="That has the alias since then; null: it was removed.")
    version_before: int | None


AliasHistory = page_body(
    "AliasHistory", "A page of the changes of a collection, the newest first.", changes=list[AliasChange]
)
