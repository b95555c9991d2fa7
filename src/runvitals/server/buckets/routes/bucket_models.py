"""What responses about buckets contain: never credentials."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.server.buckets.storage.buckets import BucketRow
from runvitals.server.http.bodies import ResponseBody, page_body

Provider = Literal["s3", "gcs", "azure", "folder"]


class BucketStep(ResponseBody):
    """A step of a check of a bucket."""

    step: Literal["open", "write", "list", "read", "presign", "cors", "delete"]
    state: Literal["ok", "failed", "missing"] = Field(
        description="`missing`: files go through the server, because signed addresses cannot be used."
    )
    error: str | None
    milliseconds: int


class BucketPlace(ResponseBody):
    """Where a bucket is, and whether it works."""

    provider: Provider
    bucket: str
    prefix: str
    endpoint: str
    region: str
    kms_key: str
    direct: bool = Field(description="Whether clients read it at signed addresses, if it has such.")
    steps: list[BucketStep] = Field(description="Of the last check.")
    checked_ms: int | None
    away_ms: int | None = Field(description="Since when it cannot be used; null: it can.")
    away_reason: str | None


class BucketSchema(BucketPlace):
    """A bucket of the organisation."""

    id: int
    name: str
    account: str
    tenant: str
    client_id: str
    credentials: Literal["environment", "secret"]
    created_ms: int
    teams: list[str] = Field(description="Teams that have it.")


BucketsPage = page_body("BucketsPage", "A page of buckets.", buckets=list[BucketSchema])


class TeamStorage(ResponseBody):
    """Where the files of a team are kept."""

    bucket: BucketPlace | None = Field(description="Null: in the store of the server.")
    objects: int
    bytes: int


def bucket_schema(row: BucketRow) -> BucketSchema:
    """Return a bucket as administrators of the organisation see it."""
    location = row.location
    return BucketSchema(
        **bucket_place(row).model_dump(),
        id=row.id,
        name=row.name,
        account=location.account,
        tenant=location.tenant,
        client_id=location.client_id,
        credentials="secret" if row.has_secret else "environment",
        created_ms=row.created_ms,
        teams=list(row.teams),
    )


def bucket_place(row: BucketRow, below: str = "") -> BucketPlace:
    """Return where a bucket, or a folder in it, is."""
    location = row.location
    return BucketPlace(
        provider=location.provider,
        bucket=location.bucket,
        prefix=location.prefix + below,
        endpoint=location.endpoint,
        region=location.region,
        kms_key=location.kms_key,
        direct=location.direct,
        steps=[BucketStep(**step) for step in row.steps],
        checked_ms=row.checked_ms,
        away_ms=row.away_ms,
        away_reason=row.away_reason,
    )
