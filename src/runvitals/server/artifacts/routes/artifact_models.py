"""Bodies of the API about artifacts."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.server.artifacts.routes.lineage_models import DatasetNodeSchema, ModelNodeSchema
from runvitals.server.http.bodies import ResponseBody, page_body


class ArtifactSchema(ResponseBody):
    """A version of an artifact."""

    entity: str | None = Field(description="The team or user that has the project; null without accounts.")
    project: str
    name: str
    type: str
    version: int = Field(description="Its number, from 0.")
    aliases: list[str]
    digest: str = Field(description="Of its files, as wandb's clients compute it.")
    description: str
    metadata: dict[str, Any]
    bytes: int
    files: int = Field(description="How many files and references it has.")
    created_ms: int
    run: str | None = Field(description="The run that logged it, if the requester may read it.")
    used_by: list[str] = Field(description="The runs that used it, as far as the requester may read them.")
    expires_ms: int | None = Field(None, description="When it is deleted, ms UTC; null: it is kept.")


class ArtifactsPage(ResponseBody):
    """A page of versions, the newest first."""

    artifacts: list[ArtifactSchema]
    total: int
    next: str | None
    ttl_s: int | None = Field(
        None, description="Of one artifact: after how long its versions are deleted; null: they are kept."
    )


class CollectionSchema(ResponseBody):
    """The versions of one artifact together."""

    name: str
    type: str
    kind: str = Field(description="`sequence`: versions that were logged; `portfolio`: that were linked.")
    description: str
    tags: list[str]
    versions: int
    created_ms: int
    updated_ms: int
    ttl_s: int | None = Field(
        None,
        description="After how long versions are deleted that say nothing about it; null: they are kept.",
    )


class TimeToLiveSchema(ResponseBody):
    """After how long the versions of an artifact are deleted."""

    ttl_s: int | None
    expiring_versions: int = Field(description="Versions that are deleted because of it, now or later.")


CollectionsPage = page_body(
    "CollectionsPage", "A page of collections, by name.", collections=list[CollectionSchema]
)


class MatchingCollectionSchema(CollectionSchema):
    """The versions of one artifact together, with where they are."""

    entity: str | None = Field(description="The team or user that has the project; null without accounts.")
    project: str


class MatchingCollections(ResponseBody):
    """Artifacts, datasets and logged models with some words, each the newest first."""

    collections: list[MatchingCollectionSchema]
    datasets: list[DatasetNodeSchema]
    models: list[ModelNodeSchema]


class EntrySchema(ResponseBody):
    """A file of a version."""

    path: str
    digest: str = Field(description="The MD5 of a file as base64; of a reference: what identifies it.")
    bytes: int | None
    reference: str | None = Field(description="Where the content is; null: it is a file.")
    sha256: str | None


EntriesPage = page_body("EntriesPage", "A page of the files of a version, by path.", files=list[EntrySchema])
