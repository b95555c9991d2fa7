"""Checks of the names, paths and texts of artifacts."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Collection
from typing import Any, Final

from runvitals.model import json_values

MAX_NAME: Final = 128
MAX_ALIASES: Final = 100
"""Aliases or tags of one version or collection."""
MAX_PATH: Final = 1024
"""Bytes of a path, as UTF-8."""
MAX_REFERENCE: Final = 8192
MAX_EXTRA_BYTES: Final = 16 * 1024
MAX_DESCRIPTION: Final = 64 * 1024
MAX_METADATA_BYTES: Final = 1024 * 1024
MAX_ENTRIES: Final = 250_000
"""Entries of one version."""
MAX_VERSION_BYTES: Final = 1 << 53
"""Bytes of all entries of a version, as their manifest says; float64 represents every integer up to it."""
LATEST: Final = "latest"

_UNSEEN: Final = frozenset(("Cf", "Zs", "Zl", "Zp"))
"""Categories of characters that are not seen: formats such as U+202E, and spaces of any width."""
_CONTROL = re.compile("[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_VERSION = re.compile(r"v\d+")
_MAX_DIGEST: Final = 1024
_MD5_BYTES: Final = 16


def checked_label(what: str, text: str, forbidden: str = "/:") -> str:
    """Check a name, an alias, a type or a tag; returns it.

    Raises:
        ValueError: it is empty, too long, or has characters that mean something in addresses.
    """
    if not 1 <= len(text) <= MAX_NAME:
        raise ValueError(f"invalid {what} {text[:60]!r}; expected 1 to {MAX_NAME} characters")
    if _CONTROL.search(text) or any(character in text for character in forbidden):
        raise ValueError(
            f"invalid {what} {text!r}; expected no control characters and none of {' '.join(forbidden)}"
        )
    if text in (".", ".."):
        raise ValueError(f"invalid {what} {text!r}")
    return text


def checked_alias(alias: str) -> str:
    """Return the alias, or raise ValueError if it is invalid or has the form of a version.

    Two aliases that look alike differ in what is seen: otherwise one could pass for a protected one.
    """
    if is_version(alias):
        raise ValueError(f"invalid alias {alias!r}: versions are named by the server")
    hidden = [character for character in alias if unicodedata.category(character) in _UNSEEN]
    if hidden.count(" ") < len(hidden) or alias != alias.strip():
        escaped = ascii(alias[:60])
        raise ValueError(f"invalid alias {escaped}; expected no invisible characters, and spaces only inside")
    return checked_label("alias", alias)


def is_version(alias: str) -> bool:
    """Return whether an alias names a version by its number: `v7`.

    Example:
        >>> is_version("v7"), is_version("latest")
        (True, False)
    """
    return _VERSION.fullmatch(alias) is not None


def checked_aliases(aliases: Collection[str]) -> list[str]:
    """Return the aliases, each once, or raise ValueError if one is invalid or there are too many."""
    if len(aliases) > MAX_ALIASES:
        raise ValueError(f"{len(aliases)} aliases; expected at most {MAX_ALIASES}")
    return list(dict.fromkeys(checked_alias(alias) for alias in aliases))


def checked_tags(tags: Collection[str]) -> list[str]:
    """Return the tags, each once, or raise ValueError if one is invalid or there are too many."""
    if len(tags) > MAX_ALIASES:
        raise ValueError(f"{len(tags)} tags; expected at most {MAX_ALIASES}")
    return list(dict.fromkeys(checked_label("tag", tag, "") for tag in tags))


def checked_path(path: str) -> str:
    """Check the path of a file in an artifact; returns it. Clients write it below a folder of their own.

    Raises:
        ValueError: it is empty, too long, absolute, or leads out of the artifact.
    """
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        raise ValueError(f"invalid path {path[:200]!r}; expected text that can be encoded as UTF-8") from None
    if not 1 <= size <= MAX_PATH:
        raise ValueError(f"invalid path {path[:60]!r}…; expected 1 to {MAX_PATH} bytes")
    if _CONTROL.search(path):
        raise ValueError(f"invalid path {path[:200]!r}; expected no control characters")
    parts = path.replace("\\", "/").split("/")
    if any(part in ("", ".", "..") for part in parts) or re.match("[A-Za-z]:", path):
        raise ValueError(f"invalid path {path[:200]!r}; expected a relative path without '..'")
    return path


def checked_digest(digest: str) -> str:
    """Check the digest of a file: the base64 of an MD5.

    Raises:
        ValueError: it is something else.
    """
    try:
        if len(base64.b64decode(digest, validate=True)) == _MD5_BYTES:
            return digest
    except (binascii.Error, ValueError):
        pass
    raise ValueError(f"invalid digest {digest[:60]!r}; expected the MD5 of the file as base64")


def checked_reference(reference: str, digest: str) -> str:
    """Check the address of a content that is kept elsewhere.

    Raises:
        ValueError: it or its digest is too long, or has control characters.
    """
    if not 1 <= len(reference) <= MAX_REFERENCE or _CONTROL.search(reference):
        raise ValueError(
            f"invalid reference {reference[:60]!r}; expected an address of at most {MAX_REFERENCE} characters"
        )
    if len(digest) > _MAX_DIGEST or _CONTROL.search(digest):
        raise ValueError(f"invalid digest {digest[:60]!r}; expected at most {_MAX_DIGEST} characters")
    return reference


def checked_description(text: str) -> str:
    """Return the description without NUL, or raise ValueError if it is too long."""
    if len(text) > MAX_DESCRIPTION:
        raise ValueError(f"a description of {len(text):,} characters; expected at most {MAX_DESCRIPTION:,}")
    return text.replace("\x00", "␀")


def checked_metadata(text: str | None) -> dict[str, Any]:
    """Return the metadata of a version, from JSON.

    Raises:
        ValueError: it is no JSON object, or too large.
    """
    if text is None or text in ("", "null"):
        return {}
    if len(text) > MAX_METADATA_BYTES:
        raise ValueError(f"metadata of {len(text):,} characters; expected at most {MAX_METADATA_BYTES:,}")
    try:
        metadata = json_values.decode(text)
    except ValueError as error:
        raise ValueError(f"invalid metadata: {error}") from None
    if not isinstance(metadata, dict):
        raise ValueError("invalid metadata; expected a JSON object")
    return metadata
