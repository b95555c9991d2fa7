"""`/organisation/buckets`: the buckets that teams may be given, and whether they work."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Path, Request, Response
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Organisation
from runvitals.server.buckets.check import check_bucket
from runvitals.server.buckets.routes.bucket_models import BucketSchema, BucketsPage, Provider, bucket_schema
from runvitals.server.buckets.storage.buckets import BucketInUse
from runvitals.server.buckets.team_buckets import TeamBuckets
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields, answering, checking
from runvitals.server.http.immediate import immediate
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.services import shared_services_of
from runvitals.store.files.bucket_location import SECRETS, BucketLocation, checked_bucket, checked_prefix

Text = Annotated[str, Field(max_length=500)]
Secret = Annotated[str, Field(max_length=8192)]
BucketId = Annotated[int, Path(ge=1, le=2**31 - 1)]

_NEEDS_SECRET: Final = "an endpoint of one's own needs credentials of its own"

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}")
"""Of Azure: it is part of a host name."""
_ELSEWHERE: Final = frozenset(("gcs_base_url", "disable_oauth"))
"""Fields that the library for buckets reads in the key file of a service account; Google writes none."""

router = Router()


class BucketSecret(RequestBody):
    """Credentials; each provider has its own. They are encrypted, and never shown again."""

    access_key_id: Secret = Field("", description="Of S3, with `secret_access_key`.")
    secret_access_key: Secret = ""
    service_account: Secret = Field("", description="Of Google Cloud: the key file of a service account.")
    account_key: Secret = Field("", description="Of Azure: this, `client_secret` or `sas_token`.")
    client_secret: Secret = ""
    sas_token: Secret = ""


class NewBucket(RequestBody):
    """A bucket to be added."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")
    provider: Literal["s3", "gcs", "azure", "folder"]
    bucket: Text = Field(description="Its name; of Azure the container; or the absolute path of a folder.")
    prefix: str = Field("", max_length=700, description="Files of a team are below `prefix/{team id}/`.")
    endpoint: Text = Field("", description="The URL of the service, if it is not that of the provider.")
    region: str = Field("", max_length=64, pattern="^[a-z0-9-]*$")
    kms_key: Text = Field("", description="Of S3: the key that encrypts new objects.")
    account: str = Field("", max_length=64, description="Of Azure: the storage account.")
    tenant: str = Field("", max_length=64, description="Of Azure, with `client_id` and `client_secret`.")
    client_id: str = Field("", max_length=64)
    direct: bool = Field(
        True,
        description="Clients read files at signed addresses in the bucket. False: they do not reach it, and "
        "files go through the server.",
    )
    secret: BucketSecret | None = Field(
        None, description="Credentials; null: those of the server's environment, or its role."
    )


class ChangedBucket(RequestBody):
    """What of a bucket is changed; what is left out stays. Where it is never changes."""

    secret: BucketSecret | None = Field(
        None, description="New credentials; null: those of the server's environment, or its role."
    )
    direct: bool | None = Field(None, description="As of a new bucket; null: unchanged.")


@immediate
def team_buckets(request: Request) -> TeamBuckets:
    """Return the file stores of teams."""
    return shared_services_of(request).team_buckets


TheBuckets = Annotated[TeamBuckets, Depends(team_buckets)]


@router.get("/organisation/buckets", needs("org:bucket_manage"), response_model=BucketsPage)
def buckets(access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The buckets by name, with the teams that have each and what its last check found."""
    rows = sorted(access.accounts.buckets.all(), key=lambda row: row.name)
    return page_of("buckets", rows, lambda row: row.name, page, bucket_schema)


@router.post("/organisation/buckets", needs("org:bucket_manage"), status_code=201)
def add_bucket(
    new: NewBucket,
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    stores: TheBuckets,
    response: Response,
) -> BucketSchema:
    """Add a bucket and check it. One whose check failed is kept, but given to no team."""
    secret = _checked_secret(new.provider, new.secret)
    location = _checked_location(new, bool(secret), stores)
    sealed = stores.seal(new.name, secret)
    row = access.accounts.buckets.create(new.name, location, sealed, requester.actor, access.clock())
    response.headers["location"] = f"/api/v1/organisation/buckets/{row.id}"
    return _check(row.id, request, access, requester, stores)


@router.patch("/organisation/buckets/{bucket}", needs("org:bucket_manage"))
def change_bucket(
    bucket: BucketId,
    changes: ChangedBucket,
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    stores: TheBuckets,
) -> BucketSchema:
    """Rotate the credentials of a bucket: new ones are checked first, and used at once where that succeeds.

    What is being sent goes on with those before. Other servers use the new ones within a minute: let the old
    ones be valid for so long.
    """
    table = access.accounts.buckets
    row = table.get(bucket)
    sealed = table.sealed_secret(bucket)
    if "secret" in changes.model_fields_set:
        secret = _checked_secret(row.location.provider, changes.secret)
        if row.location.endpoint and row.location.provider != "s3" and not secret:
            raise InvalidFields({"secret": _NEEDS_SECRET})
        with checking("endpoint"):
            location = stores.guarded(row.location)
        _check_secret(location.with_secret(secret), origin_of(request))
        sealed = stores.seal(row.name, secret)
    direct = row.location.direct if changes.direct is None else changes.direct
    table.change(bucket, requester.actor, access.clock(), sealed=sealed, direct=direct)
    stores.read_again(bucket)
    return _check(bucket, request, access, requester, stores)


def _check_secret(location: BucketLocation, origin: str) -> None:
    """Raise InvalidFields, with the step that failed, if credentials do not do all that is needed."""
    for step in check_bucket(location, origin):
        if step.state == "failed":
            text = f"the credentials were not taken: they failed at {step.step}: {step.error}"
            raise InvalidFields({"secret": text})


@router.post("/organisation/buckets/{bucket}/check", needs("org:bucket_manage"))
def check(
    bucket: BucketId, request: Request, access: TheAccess, requester: TheRequester, stores: TheBuckets
) -> BucketSchema:
    """Write, list, read and delete a small object, and try a signed address; returns each step."""
    return _check(bucket, request, access, requester, stores)


@router.delete("/organisation/buckets/{bucket}", needs("org:bucket_manage"), status_code=204)
def delete_bucket(bucket: BucketId, access: TheAccess, requester: TheRequester) -> Response:
    """Forget a bucket. What is in it stays; one that a team has cannot be deleted: 409."""
    with answering(409, BucketInUse):
        access.accounts.buckets.delete(bucket, requester.actor, access.clock())
    return Response(status_code=204)


def _check(
    bucket_id: int, request: Request, access: TheAccess, requester: TheRequester, stores: TheBuckets
) -> BucketSchema:
    table = access.accounts.buckets
    steps = stores.try_bucket(table.get(bucket_id), origin_of(request))
    noted = [step._asdict() for step in steps]
    return bucket_schema(table.note_check(bucket_id, noted, requester.actor, access.clock()))


def bucket_for_team(request: Request, access: TheAccess, requester: TheRequester, name: str) -> int:
    """Return the id of the bucket that a new team is given, which was checked.

    Raises:
        HTTPException: 403: the requester may give none.
        InvalidFields: there is none with this name, or a step of its check failed.
    """
    access.require(requester, Action.ORG_BUCKET_MANAGE, Organisation(), "a bucket of the organisation")
    row = next((row for row in access.accounts.buckets.all() if row.name == name), None)
    if row is None:
        raise InvalidFields({"bucket": f"there is no bucket {name!r}"})
    checked = _check(row.id, request, access, requester, team_buckets(request))
    for step in checked.steps:
        if step.state == "failed":
            raise InvalidFields({"bucket": f"the bucket {name!r} failed at {step.step}: {step.error}"})
    return row.id


def origin_of(request: Request) -> str:
    """Return the origin of this server's pages, as browsers name it."""
    url = str(shared_services_of(request).account_services.settings()["url"] or request.base_url)
    return "/".join(url.split("/")[:3])


def _checked_location(new: NewBucket, has_secret: bool, stores: TeamBuckets) -> BucketLocation:
    """Return where a new bucket is.

    Raises:
        InvalidFields: one of its fields is invalid.
    """
    with checking("prefix"):
        prefix = checked_prefix(new.prefix)
    with checking("bucket"):
        if new.provider == "folder":
            stores.check_folder(new.bucket)
        checked_bucket(new.provider, new.bucket)
    if new.kms_key and new.provider != "s3":
        raise InvalidFields({"kms_key": "of these providers, the bucket itself says which key encrypts it"})
    if new.provider == "azure" and _ACCOUNT.fullmatch(new.account) is None:
        raise InvalidFields(
            {"account": "expected the storage account: 3 to 24 lower-case letters and digits"}
        )
    if new.endpoint:
        _check_endpoint(new.provider, new.endpoint, has_secret)
    location = _location_of(new, prefix)
    with checking("endpoint"):
        stores.guarded(location)
    return location


def _location_of(new: NewBucket, prefix: str) -> BucketLocation:
    values = (
        "provider",
        "bucket",
        "endpoint",
        "region",
        "kms_key",
        "account",
        "tenant",
        "client_id",
        "direct",
    )
    return BucketLocation(prefix=prefix, **{name: getattr(new, name) for name in values})


def _check_endpoint(provider: Provider, endpoint: str, has_secret: bool) -> None:
    """Check the URL of a service.

    Raises:
        InvalidFields: it is invalid, or would get the credentials of this machine.
    """
    if not endpoint.startswith(("https://", "http://")) or provider == "folder":
        raise InvalidFields({"endpoint": "expected the URL of a service, https://HOST"})
    if provider != "s3" and not has_secret:  # these send tokens, which S3 does not
        raise InvalidFields({"endpoint": _NEEDS_SECRET})


def _checked_secret(provider: Provider, secret: BucketSecret | None) -> dict[str, str]:
    """Return the credentials of a bucket; empty: those of the environment.

    Raises:
        InvalidFields: they are not those of its provider.
    """
    sent = {} if secret is None else {k: v for k, v in secret.model_dump().items() if v}
    allowed = SECRETS[provider]
    if sent.keys() - set(allowed) or (provider == "s3" and 0 < len(sent) < len(allowed)):
        raise InvalidFields({"secret": f"expected {' and '.join(allowed) or 'none'} for this provider"})
    if len(sent) > 1 and provider == "azure":
        raise InvalidFields({"secret": f"expected one of {', '.join(allowed)}"})
    if "service_account" in sent:
        try:
            account = json.loads(sent["service_account"])
        except (ValueError, RecursionError):
            account = None
        if not isinstance(account, dict) or not _ELSEWHERE.isdisjoint(account):
            expected = f"a JSON object without {' and '.join(sorted(_ELSEWHERE))}"
            raise InvalidFields({"secret": f"expected the key file of a service account, {expected}"})
    return sent
