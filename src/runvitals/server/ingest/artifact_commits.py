"""Makes versions of artifacts from the records of runs that logged them.

Doing the same twice has no effect, so it does not matter if a record is sent again after the server ended
between a version and the record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from runvitals.model import media
from runvitals.model.artifacts import ArtifactAddress, UnknownArtifact
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import Principal
from runvitals.server.artifacts.storage.rows import Entry, NewVersion
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.media import StoredMedia
from runvitals.server.runs.storage.run_places import RunPlace

_MAX_PARTS: Final = 10_000
MayDo = Callable[[Principal | None, Action, int], bool]
"""Whether the sender of a record may do something with the artifacts of a project, by its number."""

log = logging.getLogger("runvitals.server")


class _File(msgspec.Struct):
    path: str
    md5: str
    sha256: str
    bytes: int


class _Reference(msgspec.Struct):
    path: str
    url: str
    digest: str
    bytes: int | None = None


class _Part(msgspec.Struct):
    """A part of an artifact that was logged; the first one has what is said about it."""

    id: str
    digest: str
    artifact_type: str
    part: int = 0
    parts: int = 1
    description: str = ""
    metadata: dict[str, Any] = {}
    aliases: list[str] = []
    tags: list[str] = []
    ttl_s: int | None = None
    files: list[_File] = []
    references: list[_Reference] = []


class _Use(msgspec.Struct):
    artifact: str
    use_as: str = ""


class _Refused(Exception):
    """The sender of the record may not do this."""


class ArtifactCommits:
    """Logs and uses artifacts as records say.

    Args:
        clock: the time now, ms UTC.

    Attributes:
        may: the rights of senders; without accounts all is allowed.
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._store = metadata_store
        self._clock = clock
        self.may: MayDo = lambda sender, action, project_id: True

    def add(self, records: Sequence[StoredMedia], sender: Principal | None) -> list[StoredEvent]:
        """Carry out what the new ones of some records say about artifacts.

        Returns events about what could not be done.

        Args:
            sender: the owner of the key that the records came with, with the key's limits: the author of the
                run may have more rights. None without accounts.
        """
        artifacts = [record for record in records if record.kind == media.ARTIFACT]
        events: list[StoredEvent] = []
        stored = self._store.media.find_stored(artifacts) if artifacts else set()
        for record in artifacts:
            if (record.writer_id, record.seq) in stored:
                continue
            for item in record.items:
                try:
                    self._apply(record, item, sender)
                except (ValueError, UnknownArtifact, _Refused, msgspec.ValidationError) as error:
                    events.append(_refusal(record, item, str(error)))
        return events

    def _apply(self, record: StoredMedia, item: dict[str, Any], sender: Principal | None) -> None:
        run = self._store.runs.place(record.run_id)
        if run is None:  # deleted for good a moment ago
            return
        if item.get("action") == "log":
            part = msgspec.convert(item, _Part)
            if not self.may(sender, Action.ARTIFACT_CREATE, run.project_id):
                raise _Refused(f"the sender may not: it needs the permission {Action.ARTIFACT_CREATE.value}")
            self._log(record, run, part)
        elif item.get("action") == "use":
            self._use(record, run, msgspec.convert(item, _Use), sender)

    def _log(self, record: StoredMedia, run: RunPlace, part: _Part) -> None:
        if not 0 <= part.part < part.parts <= _MAX_PARTS:
            raise ValueError(f"part {part.part} of {part.parts}; expected at most {_MAX_PARTS:,} parts")
        now_ms, versions = self._clock(), self._store.artifacts.versions
        new = NewVersion(
            run.project_id,
            part.artifact_type,
            record.key,
            part.digest,
            tuple(part.aliases),
            tuple(part.tags),
            part.description,
            part.metadata,
            None if part.ttl_s is None else max(part.ttl_s, 0),
            run_id=record.run_id,
            author_id=run.author_id,
            client_id=part.id,
        )
        version = versions.begin(new, now_ms)
        if version.state == "committed":
            return  # the same files were logged before
        self._store.artifacts.entries.put(version.id, _entries(part), record.run_id)
        if part.part == part.parts - 1:
            versions.commit(version.id, now_ms)

    def _use(self, record: StoredMedia, run: RunPlace, use: _Use, sender: Principal | None) -> None:
        address = ArtifactAddress.parsed(use.artifact)
        project_id = self._project(run, address)
        version = None
        if project_id is not None:
            name = f"{address.name}:{address.alias}"
            version = self._store.artifacts.collections.member(project_id, name)
        may_read = project_id is not None and self.may(sender, Action.ARTIFACT_READ, project_id)
        if version is None or not may_read:  # the same text, which must not tell what others have
            raise UnknownArtifact(f"there is no artifact {address}")
        self._store.artifacts.lineage.add(version.version.id, record.run_id, use.use_as, self._clock())

    def _project(self, run: RunPlace, address: ArtifactAddress) -> int | None:
        entity_id = run.entity_id
        if address.entity is not None and address.entity != run.entity:
            entity_id = self._store.accounts.entity_id(address.entity)
        projects = dict(self._store.projects.named(address.project or run.project))
        return projects.get(entity_id)


def _entries(part: _Part) -> list[Entry]:
    files = [Entry(file.path, file.md5, file.bytes, sha256=file.sha256) for file in part.files]
    return [
        *files,
        *(
            Entry(reference.path, reference.digest, reference.bytes, reference.url)
            for reference in part.references
        ),
    ]


def _refusal(record: StoredMedia, item: dict[str, Any], why: str) -> StoredEvent:
    verb = "used" if item.get("action") == "use" else "logged"
    text = f"the artifact {record.key!r} could not be {verb}: {why}"
    log.warning(text, extra={"fields": {"run": record.run_id}})
    return StoredEvent(record.run_id, record.time_ms, "artifact_rejected", "warning", text[:2000])
