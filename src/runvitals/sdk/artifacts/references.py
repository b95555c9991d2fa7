"""Reads contents that are kept elsewhere: what identifies them there, and copies that are checked by it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from runvitals.base.replaced_files import replacing
from runvitals.model.artifacts import ArtifactEntry
from runvitals.store.files.bucket_location import SCHEMES
from runvitals.store.files.bucket_objects import (
    VERSION,
    ObjectIdentity,
    object_identity,
    objects_below,
    read_object,
)

_TIMEOUT_S: Final = 30.0
_SOON_S: Final = 5.0
_BUFFER_BYTES: Final = 1 << 20
_MD5_HEX: Final = re.compile(r"[0-9a-f]{32}")
_WEB: Final = ("http", "https")


class ReferenceChanged(OSError):
    """The content at an address is not the one that was logged."""


class ContentIdentity(NamedTuple):
    """What identifies a content: the MD5 of a file as base64, an ETag, or the address where there is none."""

    digest: str
    bytes: int | None


def identity(address: str) -> ContentIdentity:
    """Return what identifies the content at an address now.

    Raises:
        ValueError: contents with such an address cannot be read.
        OSError: it cannot be read.
    """
    scheme = urlsplit(address).scheme
    if scheme == "file":
        path = local_file(address)
        return ContentIdentity(md5_of(path), os.path.getsize(path))
    if scheme in _WEB:
        return _asked_identity(address, _TIMEOUT_S)
    if scheme in SCHEMES:
        return _object_identity(address, object_identity(address))
    raise ValueError(f"{address!r} cannot be read: expected file://, https://, {', '.join(SCHEMES)}://")


def web_identity(address: str) -> ContentIdentity | None:
    """Return what identifies the content at an `https://` address, if it answers soon; else None."""
    try:
        return _asked_identity(address, _SOON_S)
    except (OSError, ValueError):
        return None


def is_web(address: str) -> bool:
    """Return whether an address is one of `http://` or `https://`."""
    return urlsplit(address).scheme in _WEB


class FoundReference(NamedTuple):
    """A content at an address, or below it. `name`: its path below it; empty: it is there itself."""

    name: str
    address: str
    identity: ContentIdentity


def found_at(address: str) -> Iterator[FoundReference]:
    """Yield what is at an address, or all objects below it if it is a prefix of a bucket.

    The address of an object names its version if its bucket keeps versions: it can be fetched although there
    is a newer one. Lists of objects do not say which version each is.

    Raises:
        ValueError: contents with such an address cannot be read.
        OSError: it cannot be read, or there is nothing.
    """
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES:
        yield FoundReference("", address, identity(address))
        return
    missing: OSError = FileNotFoundError(f"{address} cannot be read: there is nothing below it")
    if not address.endswith("/") and parts.path:
        try:
            current_identity = object_identity(address)
            yield FoundReference(
                "", _versioned(address, current_identity), _object_identity(address, current_identity)
            )
            return
        except FileNotFoundError as error:
            missing = error
    is_found = False
    for name, where, current_identity in objects_below(address):
        is_found = True
        yield FoundReference(name, where, _object_identity(where, current_identity))
    if not is_found:
        raise missing


def is_known(entry: ArtifactEntry) -> bool:
    """Return whether it was recorded what identifies the content of a reference.

    W&B's clients send the size 0 if they do not know it.
    """
    return entry.digest != entry.reference or bool(entry.bytes)


def is_readable(entry: ArtifactEntry) -> bool:
    """Return whether the content of a reference can be fetched.

    That of a bucket must be known, to be checked: without, it may be a prefix.
    """
    scheme = urlsplit(entry.reference or "").scheme
    return scheme in _WEB or (is_known(entry) and scheme in ("file", *SCHEMES))


def fetch(entry: ArtifactEntry, path: str) -> None:
    """Write the content of a reference to a path, if it is still the one that was logged, as far as known.

    Raises:
        ReferenceChanged: it is another one.
        OSError: it cannot be read, or not be written.
    """
    address = entry.reference or ""
    scheme = urlsplit(address).scheme
    if scheme == "file":
        _fetch_local(entry, local_file(address), path)
    elif scheme in _WEB:
        with _web(address, "GET", _TIMEOUT_S) as response:
            _check(entry, _web_identity(address, response.headers))
            _write(entry, iter(lambda: response.read(_BUFFER_BYTES), b""), path)
    else:
        content = read_object(address)
        _check(entry, _object_identity(address, content.identity))
        _write(entry, content.pieces, path)


def matches(entry: ArtifactEntry, path: str) -> bool | None:
    """Return whether a file has the content of a reference; None if that cannot be said."""
    if entry.bytes is not None and os.path.getsize(path) != entry.bytes:
        return False
    if urlsplit(entry.reference or "").scheme == "file":
        return md5_of(path) == entry.digest
    return None


def local_file(address: str) -> str:
    """Return the path in an address of the form `file:///path`; W&B's clients do not quote it."""
    path = address.partition("://")[2]
    return path if os.path.exists(path) else unquote(path)


def md5_of(path: str) -> str:
    """Return the MD5 of a file as base64."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(_BUFFER_BYTES):
            digest.update(block)
    return base64.b64encode(digest.digest()).decode("ascii")


def _fetch_local(entry: ArtifactEntry, source: str, path: str) -> None:
    with replacing(path) as draft:
        shutil.copyfile(source, draft)
        _check(entry, ContentIdentity(md5_of(draft), os.path.getsize(draft)))


def _write(entry: ArtifactEntry, pieces: Iterable[bytes], path: str) -> None:
    size = 0
    with replacing(path) as draft, open(draft, "wb") as file:
        for piece in pieces:
            file.write(piece)
            size += len(piece)
        _check(entry, ContentIdentity(entry.digest, size))


def _check(entry: ArtifactEntry, current_identity: ContentIdentity) -> None:
    if not is_known(entry):
        return
    same_size = entry.bytes is None or current_identity.bytes is None or current_identity.bytes == entry.bytes
    same = entry.digest == entry.reference or _plain_tag(entry.digest) == _plain_tag(current_identity.digest)
    if same_size and (same or not _comparable(entry)):
        return
    raise ReferenceChanged(f"the content at {entry.reference} is not the one that was logged")


def _comparable(entry: ArtifactEntry) -> bool:
    """Return whether a digest can be compared: each interface of Google Cloud has ETags of its own."""
    return not (entry.reference or "").startswith("gs://") or bool(_MD5_HEX.fullmatch(entry.digest))


def _asked_identity(address: str, timeout_s: float) -> ContentIdentity:
    """Return what identifies the content at a web address; some services answer no HEAD."""
    try:
        with _web(address, "HEAD", timeout_s) as response:
            return _web_identity(address, response.headers)
    except OSError as error:
        if not isinstance(error.__cause__, HTTPError):
            raise
    with _web(address, "GET", timeout_s) as response:
        return _web_identity(address, response.headers)


@contextmanager
def _web(address: str, method: str, timeout_s: float) -> Iterator[Any]:
    try:
        with _opener().open(Request(address, method=method), timeout=timeout_s) as response:
            yield response
    except URLError as error:
        if isinstance(error, HTTPError):
            error.close()
        raise OSError(f"{address} cannot be read: {error}") from error


class _CheckedAddresses(HTTPRedirectHandler):
    """Refuses addresses of the link, where clouds have a machine's secrets: anybody may log an address."""

    handler_order = 0

    def http_request(self, request: Request) -> Request:
        host = urlsplit(request.full_url).hostname or ""
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:  # a proxy may know it
            return request
        for *_, address in addresses:
            if ip_address(str(address[0]).partition("%")[0]).is_link_local:
                raise URLError(f"{host} is an address of this link, which references may not name")
        return request

    https_request = http_request


@cache
def _opener() -> OpenerDirector:
    """Return what opens web addresses, and no others: who logged an artifact may redirect to any."""
    opener = OpenerDirector()
    for handler in (
        ProxyHandler,
        HTTPHandler,
        HTTPSHandler,  # loads the certificates of authorities
        HTTPDefaultErrorHandler,
        HTTPErrorProcessor,
        UnknownHandler,
        _CheckedAddresses,
    ):
        opener.add_handler(handler())
    return opener


def _web_identity(address: str, headers: Any) -> ContentIdentity:
    length = headers.get("Content-Length", "")
    return ContentIdentity(_tag(headers.get("ETag")) or address, int(length) if length.isdigit() else None)


def _versioned(address: str, current_identity: ObjectIdentity) -> str:
    """Return the address of this version. Google Cloud numbers objects of buckets without versions, too."""
    if current_identity.version is None or VERSION in address or address.startswith("gs://"):
        return address
    return f"{address}{VERSION}{quote(current_identity.version, safe='')}"


def _object_identity(address: str, current_identity: ObjectIdentity) -> ContentIdentity:
    return ContentIdentity(current_identity.tag or address, current_identity.bytes)


def _tag(text: str | None) -> str:
    """Return an ETag as W&B's clients write it."""
    return (text or "").strip('"')


def _plain_tag(tag: str) -> str:
    """Return what is the same in the ETags of a content, whether it is sent packed or not."""
    return tag.removeprefix("W/").strip('"').removesuffix("-gzip")
