"""Opens buckets. The library for them is loaded when one is used."""

from __future__ import annotations

import json
import logging
import os
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.folder_store import FolderFileStore

if TYPE_CHECKING:
    from runvitals.store.files.object_store import ObjectFileStore

log = logging.getLogger("runvitals.store")
EXTRA: Final = "pip install 'runvitals[bucket]'"
_CLIENT: Final = {
    "connect_timeout": "5s",
    "read_timeout": "60s",  # between two pieces, not of all
    "timeout": "24h",
    "user_agent": "runvitals",
}
_PATIENCE_S: Final = 10.0
"""A service that is well answers within a second."""
_VARIABLES: Final = {
    "s3": "AWS_REGION, and AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS, the file of a service account",
    "azure": "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY",
}
_RETRIES: Final = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}


def open_bucket(location: BucketLocation, patience_s: float = _PATIENCE_S) -> ObjectFileStore:
    """Return the contents in an existing bucket.

    A server starts while the service of its bucket is away, and has the contents when it is back. Until then,
    whoever reads one gets an error.

    Args:
        patience_s: how long the bucket has to answer.

    Raises:
        OSError: it does not exist or refuses these credentials, or the library for it is not installed.
    """
    store = _object_store(location)
    answer: Future[None] = Future()
    threading.Thread(target=_check, args=(store, answer), name="runvitals-bucket", daemon=True).start()
    from runvitals.store.files.object_store import NoAnswer

    try:
        answer.result(patience_s)
    except (FutureTimeoutError, NoAnswer):
        log.warning("the bucket %s does not answer: its contents are not available until it does", location)
    return store


def _check(store: ObjectFileStore, answer: Future[None]) -> None:
    try:
        store.check()
    except Exception as error:  # noqa: BLE001 - raised by `open_bucket`
        answer.set_exception(error)
    else:
        answer.set_result(None)


def open_store(location: BucketLocation) -> ObjectFileStore | FolderFileStore:
    """Return the contents in a bucket or folder, without a look whether it can be used.

    Raises:
        OSError: the library is not installed, or refuses the credentials or endpoint.
    """
    if location.provider == "folder":
        if not os.path.isdir(location.bucket):  # it may be on a disk that is not mounted
            raise OSError(f"there is no folder {location.bucket}")
        return FolderFileStore(os.path.join(location.bucket, location.prefix.rstrip("/")))
    return _object_store(location)


def open_objects(location: BucketLocation) -> Any:
    """Return a bucket as a store of the library obstore.

    Raises:
        OSError: the library is not installed, or refuses the credentials or endpoint.
    """
    client: dict[str, Any] = {**_CLIENT, "allow_http": True}
    if location.proxy:
        client |= {"proxy_url": location.proxy, "pool_idle_timeout": "10s"}
    try:
        return _OPENED[location.provider](location, client)
    except ImportError:
        raise OSError(f"the bucket {location} needs obstore: {EXTRA}") from None
    except Exception:  # noqa: BLE001 - the library has errors of its own, with credentials in them
        hint = "" if location.secret else f"; expected in the environment: {_VARIABLES[location.provider]}"
        raise OSError(
            f"the bucket {location} cannot be used: its endpoint or credentials are invalid or missing{hint}"
        ) from None


def _object_store(location: BucketLocation) -> ObjectFileStore:
    objects = open_objects(location)
    from runvitals.store.files.object_store import ObjectFileStore

    may_sign = location.provider != "azure" or "client_secret" not in location.secret
    return ObjectFileStore(objects, str(location), location.prefix, may_sign)


def _open_s3(location: BucketLocation, client: dict[str, Any]) -> Any:
    from obstore.store import S3Store

    secret = location.secret
    config: dict[str, Any] = {"checksum_algorithm": "SHA256"}
    provider: Any = None
    if secret:
        config |= {"endpoint": location.endpoint or _amazon(location.region)}
        keys = {"access_key_id": secret["access_key_id"], "secret_access_key": secret["secret_access_key"]}
        # Not as configuration: a session token of the environment would be sent with them.
        provider = lambda: {**keys, "token": None, "expires_at": None}  # noqa: E731
    elif location.endpoint:
        config["endpoint"] = location.endpoint
    if not secret and "AWS_PROFILE" in os.environ:
        from obstore.auth.boto3 import Boto3CredentialProvider

        provider = Boto3CredentialProvider()
    if location.region:
        config["region"] = location.region
    if location.kms_key:
        config |= {"server_side_encryption": "aws:kms", "sse_kms_key_id": location.kms_key}
    return S3Store(
        location.bucket,
        config=config,  # type: ignore[arg-type]
        client_options=client,  # type: ignore[arg-type]
        retry_config=_RETRIES,  # type: ignore[arg-type]
        credential_provider=provider,
    )


def _amazon(region: str) -> str:
    return f"https://s3.{region or 'us-east-1'}.amazonaws.com"


def _open_gcs(location: BucketLocation, client: dict[str, Any]) -> Any:
    from obstore.store import GCSStore

    config: dict[str, Any] = {}
    if location.secret:
        account = json.loads(location.secret["service_account"])
        if location.endpoint:
            account["gcs_base_url"] = location.endpoint
        config["service_account_key"] = json.dumps(account)
    return GCSStore(
        location.bucket,
        config=config,  # type: ignore[arg-type]
        client_options=client,  # type: ignore[arg-type]
        retry_config=_RETRIES,  # type: ignore[arg-type]
    )


def _open_azure(location: BucketLocation, client: dict[str, Any]) -> Any:
    from obstore.store import AzureStore

    secret = location.secret
    config: dict[str, Any] = {}
    if location.account:
        config["account_name"] = location.account
    if location.endpoint:
        config["endpoint"] = location.endpoint
    if location.tenant:
        config |= {"tenant_id": location.tenant, "client_id": location.client_id}
    for name, option in (
        ("account_key", "account_key"),
        ("client_secret", "client_secret"),
        ("sas_token", "sas_key"),
    ):
        if name in secret:
            config[option] = secret[name]
    return AzureStore(
        location.bucket,
        config=config,  # type: ignore[arg-type]
        client_options=client,  # type: ignore[arg-type]
        retry_config=_RETRIES,  # type: ignore[arg-type]
    )


_OPENED: Final = {"s3": _open_s3, "gcs": _open_gcs, "azure": _open_azure}
