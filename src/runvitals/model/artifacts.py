"""Versions of artifacts as readers return them: from a server, and from the journals of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from runvitals.model.artifact_names import LATEST

_HEADER: Final = b"wandb-artifact-manifest-v1\n"


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """A file of a version, or a reference to a content that is kept elsewhere.

    Attributes:
        digest: of a file: its MD5 as base64; of a reference: whatever identifies the content there.
        bytes: None if the size of a reference is not known.
        reference: the address of the content; None: it is a file.
        sha256: of a file, if its content is known.
    """

    path: str
    digest: str
    bytes: int | None = None
    reference: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class ArtifactVersion:
    """A version of an artifact, without its files.

    Attributes:
        entity: the team or user that has the project; None without accounts.
        version: its number, from 0.
        digest: of its files, as W&B's clients compute it.
        bytes, files: of its entries, references included.
        run: id of the run that logged it; None if there is none.
        used_by: ids of runs that used it.
        expires_ms: when a server deletes it, ms UTC; None: it is kept.
    """

    entity: str | None
    project: str
    name: str
    type: str
    version: int
    aliases: tuple[str, ...]
    digest: str
    description: str
    metadata: dict[str, Any]
    bytes: int
    files: int
    created_ms: int
    run: str | None = None
    used_by: tuple[str, ...] = ()
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ArtifactAddress:
    """The address `entity/project/name:alias` in parts. `alias`: an alias, or a version such as `v3`."""

    entity: str | None
    project: str | None
    name: str
    alias: str = LATEST

    @classmethod
    def parsed(cls, text: str) -> ArtifactAddress:
        """Read an address as users write it.

        Raises:
            ValueError: it names no artifact.

        Example:
            >>> ArtifactAddress.parsed("digits/mnist:best")
            ArtifactAddress(entity=None, project='digits', name='mnist', alias='best')
        """
        *before, last = text.split("/")
        name, colon, alias = last.partition(":")
        if len(before) > 2 or not name or (colon and not alias) or "" in before:
            raise ValueError(f"invalid artifact {text[:200]!r}; expected [[entity/]project/]name[:alias]")
        project = before[-1] if before else None
        return cls(before[0] if len(before) == 2 else None, project, name, alias or LATEST)

    def __str__(self) -> str:
        parts = [part for part in (self.entity, self.project) if part]
        return "/".join([*parts, f"{self.name}:{self.alias}"])


class UnknownArtifact(LookupError):
    """There is no such collection, version, alias or file of an artifact."""


def manifest_digest(entries: Iterable[ArtifactEntry]) -> str:
    """Return the digest of the files of a version: an MD5 of paths and digests, as W&B's clients compute it.

    Example:
        >>> manifest_digest([])
        '64e7c61456b10382e2f3b571ac24b659'
    """
    digest = hashlib.md5(_HEADER, usedforsecurity=False)
    for entry in sorted(entries, key=lambda entry: entry.path):
        digest.update(f"{entry.path}:{entry.digest}\n".encode())
    return digest.hexdigest()
