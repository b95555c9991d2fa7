"""Checks a bucket step by step, by the code that stores and reads files in it."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.buckets import open_store
from runvitals.store.files.interface import FileStore

StepName = Literal["open", "write", "list", "read", "presign", "cors", "delete"]
_ADDRESS_S: Final = 300
_TIMEOUT_S: Final = 10.0
_BYTES: Final = 64


class CheckStep(NamedTuple):
    """A step of a check.

    Attributes:
        state: `ok`; `failed`: the bucket cannot be used; `missing`: it can, without signed addresses.
    """

    step: StepName
    state: Literal["ok", "failed", "missing"]
    error: str | None
    milliseconds: int


class _Unusual(Exception):
    """What a step found instead of what it expected."""


class _NoRedirects(HTTPRedirectHandler):
    """A service that answers at its own address needs none, and one that does not leads elsewhere."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


def check_bucket(location: BucketLocation, origin: str) -> list[CheckStep]:
    """Write, list, read and delete a small object below the prefix; returns the steps up to one that failed.

    Args:
        origin: of this server's pages, from which browsers would read signed addresses.
    """
    test_location = location.below(f".runvitals-check-{secrets.token_hex(8)}")
    return list(_steps(test_location, origin))


def _steps(location: BucketLocation, origin: str) -> Iterator[CheckStep]:
    stores: list[FileStore] = []
    yield (opened := _tried("open", lambda: stores.append(open_store(location))))
    if opened.state != "ok":
        return
    (store,), content = stores, secrets.token_bytes(_BYTES)
    sha256 = hashlib.sha256(content).hexdigest()
    yield (written := _tried("write", lambda: _write(store, sha256, content)))
    if written.state != "ok":
        return
    yield _tried("list", lambda: _list(store, sha256))
    yield _tried("read", lambda: _read(store, sha256, content))
    address = None
    if location.provider != "folder":
        asks = _opener(location)
        signed = _tried("presign", lambda: _read_signed(asks, store, sha256, content), "missing")
        yield signed
        if signed.state == "ok":
            address = store.signed_address(sha256, "GET", _ADDRESS_S)
    if address is not None:
        yield _tried("cors", lambda: _ask_cors(asks, address, origin), "missing")
    yield _tried("delete", lambda: _delete(store, sha256))


def _opener(location: BucketLocation) -> OpenerDirector:
    if not location.proxy:
        return build_opener(_NoRedirects)
    proxies = dict.fromkeys(("http", "https"), location.proxy)
    return build_opener(_NoRedirects, ProxyHandler(proxies))


def _tried(
    step: StepName, work: Callable[[], object], else_state: Literal["failed", "missing"] = "failed"
) -> CheckStep:
    start = time.monotonic()
    error: str | None = None
    try:
        work()
    except HTTPError as refused:
        refused.close()
        error = f"status {refused.code}"
    except URLError as refused:
        error = f"no connection: {refused.reason}"
    except OSError as refused:
        error = refused.strerror or str(refused)
        if step != "open":  # without the name of the object
            error = error.rpartition(": ")[2]
    except _Unusual as unusual:
        error = str(unusual)
    took = round((time.monotonic() - start) * 1000)
    return CheckStep(step, "ok" if error is None else else_state, error, took)


def _write(store: FileStore, sha256: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="runvitals-check-") as folder:
        path = os.path.join(folder, sha256)
        with open(path, "wb") as file:
            file.write(content)
        store.take(sha256, path)


def _list(store: FileStore, sha256: str) -> None:
    if sha256 not in {content.sha256 for content in store.contents()}:
        raise _Unusual("the list of objects has not what was written")


def _read(store: FileStore, sha256: str, content: bytes) -> None:
    with store.open(sha256) as file:
        if file.read() != content:
            raise _Unusual("what was read is not what was written")


def _read_signed(asks: OpenerDirector, store: FileStore, sha256: str, content: bytes) -> None:
    address = store.signed_address(sha256, "GET", _ADDRESS_S)
    if address is None:
        raise _Unusual("these credentials cannot sign addresses")
    with asks.open(address, timeout=_TIMEOUT_S) as response:
        if response.read(2 * _BYTES) != content:
            raise _Unusual("what a signed address returned is not what was written")


def _ask_cors(asks: OpenerDirector, address: str, origin: str) -> None:
    headers = {"origin": origin, "access-control-request-method": "GET"}
    with asks.open(Request(address, headers=headers, method="OPTIONS"), timeout=_TIMEOUT_S) as response:
        allowed = response.headers.get("access-control-allow-origin")
    if allowed not in ("*", origin):
        raise _Unusual(f"pages of {origin} may not read it: add a CORS rule that allows GET for this origin")


def _delete(store: FileStore, sha256: str) -> None:
    store.remove([sha256])
    if any(content.sha256 == sha256 for content in store.contents()):
        raise _Unusual("what was deleted is still there")
