"""Artifacts as the metadata store returns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from runvitals.model.artifacts import ArtifactVersion
from runvitals.model.artifacts import UnknownArtifact as UnknownArtifact
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.store.errors import InUse


@dataclass(frozen=True, slots=True)
class Collection:
    """A named list of versions, a `kind` of `sequence` or `portfolio`.

    `entity` is None in a store without accounts; `versions` is their number. `ttl_s`: after how long versions
    that say nothing about it are deleted; None: they are kept.
    """

    id: int
    project_id: int
    project: str
    entity: str | None
    kind: str
    name: str
    type: str
    description: str
    tags: tuple[str, ...]
    created_ms: int
    updated_ms: int
    ttl_s: int | None
    versions: int


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an artifact.

    Args:
        collection: the sequence that it was logged to.
        version: its number there; None in a draft.
        state: `draft`, `committed` or `deleted`.
        ttl_s: after how long it may be deleted; None: nothing was said; not positive: never.
        run_id: of the run that made it, by the number in the metadata store.
        bytes, files: of its entries, references included.
    """

    id: int
    collection: Collection
    version: int | None
    state: str
    digest: str
    manifest_kind: str
    base_id: int | None
    description: str
    metadata: dict[str, Any]
    tags: tuple[str, ...]
    ttl_s: int | None
    history_step: int | None
    run_id: int | None
    author_id: int | None
    client_id: str | None
    bytes: int
    files: int
    created_ms: int
    updated_ms: int


@dataclass(frozen=True, slots=True)
class CollectionVersion:
    """A version in a collection, with its number and aliases there."""

    id: int
    collection: Collection
    number: int
    created_ms: int
    version: Version
    aliases: tuple[str, ...]

    def as_read(self, run: str | None = None, used_by: tuple[str, ...] = ()) -> ArtifactVersion:
        """The version as readers get it.

        Args:
            run, used_by: the ids of the runs that logged and used it.
        """
        version, collection = self.version, self.collection
        return ArtifactVersion(
            collection.entity,
            collection.project,
            collection.name,
            collection.type,
            self.number,
            self.aliases,
            version.digest,
            version.description,
            version.metadata,
            version.bytes,
            version.files,
            version.created_ms,
            run,
            used_by,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a version, or a reference to a content that is kept elsewhere.

    Args:
        digest: of a file: its MD5 as base64.
        sha256: of a file whose content is here.
        extra: what the client noted about a reference.
        stored: of a file that was read: its content in a file store.
    """

    path: str
    digest: str
    bytes: int | None = None
    reference: str | None = None
    birth_id: int | None = None
    extra: dict[str, Any] | None = None
    sha256: str | None = None
    stored: StoredFile | None = None


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A client's description of a version that it begins to log. See `Version`."""

    project_id: int
    type: str
    name: str
    digest: str
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    description: str = ""
    metadata: dict[str, Any] | None = None
    ttl_s: int | None = None
    history_step: int | None = None
    run_id: int | None = None
    author_id: int | None = None
    client_id: str | None = None
    distributed_id: str | None = None


MAX_LINKS: Final = 100
"""The most links that are read of something to be deleted."""
MAX_NAMED_LINKS: Final = 10
NO_MANIFEST: Final = -1
"""The number of files of a draft that has no valid manifest yet, in the database."""


class ArtifactConflict(ValueError):
    """A change that the state of an artifact does not allow; the text says why."""


class LinkedVersions(InUse):
    """A deletion of versions that collections have to which they were linked.

    Attributes:
        links: where they are linked, as far as one text can name it; the requester may not read all of them.
    """

    def __init__(self, links: Sequence[CollectionVersion]) -> None:
        self.links = tuple(links)
        super().__init__(self.text(()))

    def text(self, shown: Sequence[CollectionVersion]) -> str:
        """Return why it is refused.

        Args:
            shown: the links that the requester may read.
        """
        names = [f"as {_link_text(link)}" for link in shown[:MAX_NAMED_LINKS]]
        if others := len(self.links) - len(names):
            more = "more " if names else ""
            names.append(f"in {others} {more}{'place' if others == 1 else 'places'}")
        return f"it is linked {', '.join(names)}: unlink it there first"


def _link_text(link: CollectionVersion) -> str:
    project = link.collection.project
    if link.collection.entity is not None:
        project = f"{link.collection.entity}/{project}"
    aliases = f" ({', '.join(link.aliases)})" if link.aliases else ""
    return f"{project}/{link.collection.name}:v{link.number}{aliases}"
