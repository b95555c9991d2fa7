"""Artifacts in the journals of this machine.

A version has its number by the time at which it was logged, among those of the same name in the same project.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from runvitals.base.replaced_files import replacing
from runvitals.journal import frames, paths
from runvitals.journal.reader import WriterTail
from runvitals.journal.records import Record
from runvitals.model import media
from runvitals.model.artifact_names import LATEST, is_version
from runvitals.model.artifacts import ArtifactAddress, ArtifactEntry, ArtifactVersion, UnknownArtifact
from runvitals.readers.journals.run_handle import OpenRun, open_run

_WRITER: Final = "media."
"""The beginning of the names of writers that record artifacts."""


@dataclass(frozen=True, slots=True)
class LoggedArtifact:
    """An artifact as a run logged it. `parts`: its records, by their number; `wanted`: how many it has."""

    run: str
    entity: str | None
    project: str
    name: str
    time_ms: int
    parts: dict[int, dict[str, Any]]
    part_count: int

    @property
    def digest(self) -> str:
        """The digest of its contents."""
        return str(next(iter(self.parts.values()))["digest"])

    def entries(self) -> list[ArtifactEntry]:
        """Return its files and references, by path."""
        entries = []
        for part in self.parts.values():
            entries += [
                ArtifactEntry(item["path"], item["md5"], item["bytes"], None, item["sha256"])
                for item in part.get("files") or ()
            ]
            entries += [
                ArtifactEntry(item["path"], item["digest"], item.get("bytes"), item["url"])
                for item in part.get("references") or ()
            ]
        return sorted(entries, key=lambda entry: entry.path)


@dataclass(frozen=True, slots=True)
class UsedArtifact:
    """The use of an artifact by a run: its name as `entity/project/name:version`."""

    run: str
    artifact: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class ArtifactRecords:
    """The records of a run about artifacts."""

    logged: list[LoggedArtifact]
    used: list[UsedArtifact]


def artifact_records(
    run_id: str, project: str, entity: str | None, records: Iterable[Record]
) -> ArtifactRecords:
    """Collect what the records of a run say about artifacts.

    One of which a part is missing is left out: it is being written, or the writer died.
    """
    logged: dict[str, LoggedArtifact] = {}
    used = []
    for record in records:
        for item in record.value["items"]:
            if item.get("action") == "use":
                used.append(UsedArtifact(run_id, str(item.get("artifact")), record.time_ms))
            elif item.get("action") == "log":
                current = logged.setdefault(
                    str(item.get("id")),
                    LoggedArtifact(
                        run_id, entity, project, record.value["key"], record.time_ms, {}, item["parts"]
                    ),
                )
                current.parts[item["part"]] = item
    return ArtifactRecords(
        [artifact for artifact in logged.values() if len(artifact.parts) == artifact.part_count], used
    )


class LocalArtifacts:
    """The artifacts of all runs in a data folder.

    Args:
        directory: the data folder; by default `$RUNVITALS_DIR` or the user's data home.

    Example:
        >>> LocalArtifacts("/data").find(ArtifactAddress(None, "digits", "mnist")).version.version
        3
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory

    def find(self, address: ArtifactAddress) -> LocalVersion:
        """Return the version that an address names, or raise UnknownArtifact."""
        for version in self.versions(address.project, address.name):
            if _names(address.alias, version.version):
                return version
        raise UnknownArtifact(f"there is no artifact {address} on this machine")

    def with_digest(self, address: ArtifactAddress, digest: str) -> LocalVersion | None:
        """Return the version of a name with these files; None if there is none."""
        for version in self.versions(address.project, address.name):
            if version.version.digest == digest:
                return version
        return None

    def versions(self, project: str | None = None, name: str | None = None) -> list[LocalVersion]:
        """Return all versions, of a project or name if given: by project and name, the oldest first."""
        by_name: dict[tuple[str, str], list[LoggedArtifact]] = {}
        used: list[UsedArtifact] = []
        for of_run in self._of_runs():
            used += of_run.used
            for artifact in of_run.logged:
                if project in (None, artifact.project) and name in (None, artifact.name):
                    by_name.setdefault((artifact.project, artifact.name), []).append(artifact)
        versions = []
        for _, artifacts in sorted(by_name.items()):
            versions += _number_versions(artifacts, used, self._directory)
        return versions

    def _of_runs(self) -> Iterator[ArtifactRecords]:
        root = paths.runs_dir(self._directory)
        try:
            runs = sorted(os.listdir(root))
        except FileNotFoundError:
            return
        for run_id in runs:
            try:
                yield _read(run_id, os.path.join(root, run_id))
            except (FileNotFoundError, NotADirectoryError):  # removed a moment ago; not a run
                continue


class LocalVersion:
    """A version of an artifact on this machine: an `ArtifactSource`."""

    def __init__(self, logged: LoggedArtifact, version: ArtifactVersion, directory: str | None) -> None:
        self._logged = logged
        self._directory = directory
        self.version = version

    def refresh(self) -> None:
        """Read the version again: its aliases may have changed.

        Raises:
            UnknownArtifact: the run that logged it was deleted.
        """
        address = ArtifactAddress(None, self.version.project, self.version.name)
        version = LocalArtifacts(self._directory).with_digest(address, self.version.digest)
        if version is None:
            raise UnknownArtifact(f"the artifact {address} is not on this machine any more")
        self.version = version.version

    def entries(self) -> list[ArtifactEntry]:
        """Return its files and references, by path."""
        return self._logged.entries()

    def copy(self, entry: ArtifactEntry, path: str) -> None:
        """Write the content of a file to a path.

        Raises:
            FileNotFoundError: the content is gone.
        """
        assert entry.sha256 is not None
        folder = paths.run_dir(self._logged.run, self._directory)
        with replacing(path) as draft:
            shutil.copyfile(paths.content_path(folder, entry.sha256), draft)

    def copy_small(self, paths: Mapping[ArtifactEntry, str]) -> set[ArtifactEntry]:
        """Copy none together: here one by one takes no longer."""
        return set()

    def end(self) -> None:
        """Do nothing: it keeps nothing open."""

    def run(self, run_id: str) -> OpenRun:
        """Return a run that logged or used it."""
        return open_run(run_id, self._directory)


def _read(run_id: str, folder: str) -> ArtifactRecords:
    """Read the records of a run about artifacts. Only the files of writers that record such are read."""
    project, entity = "", None
    records: list[Record] = []
    for writer, segments in paths.segments(folder).items():
        if not writer.startswith(_WRITER):
            continue
        for record in WriterTail(folder, writer).poll(segments):
            if record.type == frames.START:
                project = record.value.get("project") or project
                entity = record.value.get("entity") or entity
            elif record.type == frames.MEDIA and record.value["kind"] == media.ARTIFACT:
                records.append(record)
    records.sort(key=lambda record: record.time_ms)
    return artifact_records(run_id, project, entity, records)


def _number_versions(
    artifacts: list[LoggedArtifact], used: list[UsedArtifact], directory: str | None
) -> list[LocalVersion]:
    """Return the versions of a name. What was logged again has one version."""
    first: dict[str, LoggedArtifact] = {}
    aliases: dict[str, int] = {}
    for artifact in sorted(artifacts, key=lambda artifact: artifact.time_ms):
        if artifact.digest not in first:
            aliases[LATEST] = len(first)
            first[artifact.digest] = artifact
        number = list(first).index(artifact.digest)
        aliases.update(dict.fromkeys(artifact.parts[0].get("aliases") or (), number))
    versions = []
    for number, artifact in enumerate(first.values()):
        version = _version(artifact, number, tuple(sorted(a for a, n in aliases.items() if n == number)))
        name = f"{version.project}/{version.name}:v{number}"
        users = [use.run for use in used if use.artifact in (name, f"{version.entity}/{name}")]
        versions.append(
            LocalVersion(artifact, replace(version, used_by=tuple(dict.fromkeys(users))), directory)
        )
    return versions


def _version(logged: LoggedArtifact, number: int, aliases: tuple[str, ...]) -> ArtifactVersion:
    entries, about = logged.entries(), logged.parts[0]
    return ArtifactVersion(
        logged.entity,
        logged.project,
        logged.name,
        str(about["artifact_type"]),
        number,
        aliases,
        logged.digest,
        str(about.get("description") or ""),
        about.get("metadata") or {},
        sum(entry.bytes or 0 for entry in entries),
        len(entries),
        logged.time_ms,
        logged.run,
    )


def _names(alias: str, version: ArtifactVersion) -> bool:
    return int(alias[1:]) == version.version if is_version(alias) else alias in version.aliases
