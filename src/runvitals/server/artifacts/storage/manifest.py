"""Rules for the entries of an artifact's manifest, and for all of them together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from runvitals.model import json_values
from runvitals.model.artifact_names import (
    MAX_ENTRIES,
    MAX_EXTRA_BYTES,
    MAX_VERSION_BYTES,
    checked_digest,
    checked_path,
    checked_reference,
)
from runvitals.server.artifacts.storage.rows import Entry
from runvitals.server.database.text import check_integers

_HEADER: Final = b"wandb-artifact-manifest-v1\n"


def checked_entries(entries: Iterable[Entry]) -> list[Entry]:
    """The entries of a manifest.

    Raises:
        ValueError: one of them is invalid, there are too many, or two have the same path.
    """
    sent: list[Entry] = []
    paths: set[str] = set()
    for entry in entries:
        if len(sent) >= MAX_ENTRIES:
            raise ValueError(f"more than {MAX_ENTRIES:,} entries in a manifest")
        _check(entry)
        if entry.path in paths:
            raise ValueError(f"the path {entry.path!r} occurs more than once in the manifest")
        paths.add(entry.path)
        sent.append(entry)
    return sent


def _check(entry: Entry) -> None:
    path = checked_path(entry.path)
    check_integers(path, birth_id=entry.birth_id)
    if entry.bytes is not None and not 0 <= entry.bytes <= MAX_VERSION_BYTES:
        raise ValueError(f"invalid size {entry.bytes} of {path!r}; expected 0 to {MAX_VERSION_BYTES} bytes")
    if entry.reference is None:
        checked_digest(entry.digest)
    else:
        checked_reference(entry.reference, entry.digest)
    if entry.extra:
        json_values.check(entry.extra)
        size = len(json.dumps(entry.extra))
        if size > MAX_EXTRA_BYTES:
            raise ValueError(f"{size:,} bytes of notes of {path!r}; expected at most {MAX_EXTRA_BYTES:,}")


def checked_size(entry: Entry, stored_bytes: int) -> int:
    """Return the size of a stored file, or raise ValueError if the manifest says another one."""
    if entry.bytes not in (None, stored_bytes):
        raise ValueError(f"the size of {entry.path!r} is {stored_bytes:,} bytes, not {entry.bytes:,}")
    return stored_bytes


class Contents:
    """The entries of a version together, added by path.

    Attributes:
        files, bytes: how many there are, and their size.
    """

    def __init__(self) -> None:
        self.files = self.bytes = 0
        self._digest = hashlib.md5(_HEADER, usedforsecurity=False)
        self._paths: set[str] = set()
        self._folders: set[str] = set()

    def add(self, path: str, digest: str, size: int | None) -> None:
        """Add an entry."""
        self.files += 1
        self.bytes += size or 0
        self._digest.update(f"{path}:{digest}\n".encode())
        self._paths.add(path)
        folder = path.replace("\\", "/").rpartition("/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]

    @property
    def digest(self) -> str:
        """Return the manifest's digest as wandb computes it: an MD5 of paths and digests, by path."""
        return self._digest.hexdigest()

    def fault(self) -> str | None:
        """Return why no client could download the entries; None if one could."""
        if self.files > MAX_ENTRIES:
            return f"the artifact would have {self.files:,} files; at most {MAX_ENTRIES:,} are allowed"
        if self.bytes > MAX_VERSION_BYTES:
            return f"the artifact would have {self.bytes:,} bytes; at most {MAX_VERSION_BYTES:,} are allowed"
        both = min(self._paths & self._folders, default=None)
        return None if both is None else f"{both!r} is a file and a folder of the artifact: rename one"
