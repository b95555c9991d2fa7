"""The files and references to be logged as an artifact, by their paths in it."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from runvitals.base.json_codec import dumps
from runvitals.journal.paths import content_path
from runvitals.model.artifact_names import MAX_ENTRIES, MAX_METADATA_BYTES, checked_path, checked_reference
from runvitals.model.artifacts import ArtifactEntry, manifest_digest
from runvitals.sdk.artifacts import references
from runvitals.sdk.media.base import Item, Media
from runvitals.sdk.media.run_files import RunFiles
from runvitals.store.files.bucket_location import SCHEMES

_FILES_PER_PART: Final = 5000
_PART_BYTES: Final = 2 << 20
"""Most bytes of paths and addresses in a record, half of the limit of a record."""
_NEW: Final = "new"
Found = TypeVar("Found")
_EXTENSIONS: Final = {
    "image/svg+xml": ".svg",
    "audio/mpeg": ".mp3",
    "text/plain": ".txt",
    "application/json": ".json",
}


@dataclass(frozen=True, slots=True)
class DraftFile:
    """A file that is to be logged. `path`: on this machine."""

    path: str
    bytes: int


class ArtifactDraft:
    """The content of an artifact before it is logged.

    Files are read when the artifact is logged. What this class writes is in a temporary folder, which goes
    with it.
    """

    def __init__(self) -> None:
        self.entries: dict[str, DraftFile | ArtifactEntry] = {}
        self._folder: str | None = None
        self.id = secrets.token_hex(16)

    def add_file(self, path: str, name: str | None) -> ArtifactEntry:
        """Add a file; return its entry, with the digest still unknown.

        Raises:
            ValueError: it is no regular file, or the name is invalid.
        """
        if not os.path.isfile(path):
            raise ValueError(f"add_file(): {path!r} is not a file")
        size = os.path.getsize(path)
        name = checked_path(name or os.path.basename(path))
        self._put(name, DraftFile(os.path.realpath(path), size))
        return ArtifactEntry(name, "", size)

    def add_folder(self, folder: str, name: str | None) -> None:
        """Add all files below a folder; links to folders are not followed.

        Raises:
            ValueError: it is no folder, or a name is invalid.
        """
        if not os.path.isdir(folder):
            raise ValueError(f"add_dir(): {folder!r} is not a folder")
        prefix = f"{name.strip('/')}/" if name else ""
        for path, inside in _files_below(folder):
            self.add_file(path, prefix + inside)

    def add_reference(
        self, uri: str, name: str | None, checksum: bool | None, max_objects: int | None = None
    ) -> list[ArtifactEntry]:
        """Add an address; return its entries. A `file://` address is read for its MD5.

        Args:
            checksum: read what identifies the content of other addresses, too; None: if one ends with
                `/`, and of `https://` if it answers soon.
            max_objects: the most files below a folder or prefix; None: as many as an artifact may have.

        Raises:
            ValueError: it is no address, the file that it names does not exist, or there are too many below.
            OSError: the content cannot be read.
        """
        most = MAX_ENTRIES if max_objects is None else max_objects
        parts = urlsplit(uri)
        if not parts.scheme:
            raise ValueError(f"add_reference(): {uri!r} is not an address such as s3://bucket/key")
        if parts.scheme == "file":
            return self._add_local(references.local_file(uri), name, most)
        if checksum or (checksum is None and uri.endswith("/") and parts.scheme in SCHEMES):
            return self._add_found(uri, name, most)
        path = checked_path(name or _last_part(parts))
        identity = references.web_identity(uri) if checksum is None and references.is_web(uri) else None
        digest, size = identity or (uri, None)
        checked_reference(uri, digest)
        return [self._add(ArtifactEntry(path, digest, size, uri))]

    def _add_found(self, uri: str, name: str | None, most: int) -> list[ArtifactEntry]:
        """Add what is at an address, or all that is below it; nothing unless all can be added."""
        entries = []
        for reference in _at_most(references.found_at(uri), most, uri):
            path = _below(name, reference.name) if reference.name else name or _last_part(urlsplit(uri))
            checked_reference(reference.address, reference.identity.digest)
            entries.append(ArtifactEntry(checked_path(path), *reference.identity, reference.address))
        return [self._add(entry) for entry in entries]

    def _add_local(self, path: str, name: str | None, most: int) -> list[ArtifactEntry]:
        if os.path.isdir(path):
            return [
                self._add_local_file(file, _below(name, inside))
                for file, inside in list(_at_most(_files_below(path), most, path))
            ]
        if not os.path.isfile(path):
            raise ValueError(f"add_reference(): {path!r} is not a file")
        return [self._add_local_file(path, name or os.path.basename(path))]

    def _add_local_file(self, path: str, name: str) -> ArtifactEntry:
        digest, size = references.md5_of(path), os.path.getsize(path)
        return self._add(ArtifactEntry(checked_path(name), digest, size, f"file://{path}"))

    def new_file(self, name: str) -> str:
        """Return the path of a new file of the artifact, to be written by the caller."""
        path = os.path.join(self._own_folder(), _NEW, *checked_path(name).split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def add_media(self, value: Media, name: str) -> ArtifactEntry:
        """Encode a value of `log` as a file; its name gets the extension of its type.

        Raises:
            ValueError: it has no file, as a histogram.
        """
        own = self._own_folder()
        item = value.item(RunFiles(own))
        if "sha256" not in item:
            raise ValueError(f"add(): a {value.kind} is recorded without a file; log() it instead")
        kind = str(item["type"]).partition(";")[0]
        extension = _EXTENSIONS.get(kind) or f".{kind.rpartition('/')[2]}"
        target = self.new_file(name if name.endswith(extension) else name + extension)
        shutil.copyfile(content_path(own, item["sha256"]), target)
        return self.add_file(target, os.path.relpath(target, os.path.join(own, _NEW)).replace(os.sep, "/"))

    def remove(self, path: str) -> None:
        """Remove a file, or all files below a folder.

        Raises:
            FileNotFoundError: there is no such file or folder.
        """
        inside = [name for name in self.entries if name == path or name.startswith(f"{path}/")]
        if not inside:
            raise FileNotFoundError(f"the artifact has no file {path!r}")
        for name in inside:
            del self.entries[name]

    def _add(self, entry: ArtifactEntry) -> ArtifactEntry:
        self._put(entry.path, entry)
        return entry

    def _put(self, name: str, entry: DraftFile | ArtifactEntry) -> None:
        if len(self.entries) >= MAX_ENTRIES and name not in self.entries:
            raise ValueError(f"more than {MAX_ENTRIES:,} files in an artifact")
        self.entries[name] = entry

    def _own_folder(self) -> str:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="runvitals-artifact-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def store(self, files: RunFiles) -> list[tuple[ArtifactEntry, str]]:
        """Store all files; return the entries by path, each with the media type of its content.

        Raises:
            FileTooLarge, OSError: a file cannot be stored.
        """
        entries = []
        for name, entry in sorted(self.entries.items()):
            if isinstance(entry, DraftFile):
                about = files.add_file(entry.path, with_md5=True)
                stored = ArtifactEntry(name, about["md5"], about["bytes"], None, about["sha256"])
                entries.append((stored, str(about["type"])))
            else:
                entries.append((entry, ""))
        return entries


def _below(name: str | None, inside: str) -> str:
    return f"{name.strip('/')}/{inside}" if name else inside


def _last_part(address: SplitResult) -> str:
    return address.path.rpartition("/")[2] or address.netloc


def _at_most(items: Iterable[Found], most: int, where: str) -> Iterator[Found]:
    """Yield items, or raise ValueError at one more than the most."""
    for number, item in enumerate(items):
        if number >= most:
            raise ValueError(f"more than {most:,} files below {where}; max_objects may allow more")
        yield item


def record_items(id: str, about: dict[str, Any], stored: list[tuple[ArtifactEntry, str]]) -> Iterator[Item]:
    """Yield the items that record an artifact, each for a record of its own; see docs/concepts/journal.md.

    Args:
        id: names it until it has a version.
        about: `artifact_type`, `description`, `metadata`, `aliases`, `tags`.

    Raises:
        ValueError: too large metadata.
    """
    if len(dumps(about["metadata"])) > MAX_METADATA_BYTES:
        raise ValueError(f"the metadata of the artifact has more than {MAX_METADATA_BYTES:,} bytes")
    digest = manifest_digest(entry for entry, _ in stored)
    parts = list(_parts(stored))
    for number, part in enumerate(parts):
        item: Item = {"action": "log", "id": id, "part": number, "parts": len(parts), "digest": digest}
        item["artifact_type"] = about["artifact_type"]
        if number == 0:
            item |= about
        item["files"] = [
            {"path": e.path, "md5": e.digest, "sha256": e.sha256, "bytes": e.bytes, "type": kind}
            for e, kind in part
            if e.reference is None
        ]
        item["references"] = [
            {"path": e.path, "url": e.reference, "digest": e.digest, "bytes": e.bytes}
            for e, _ in part
            if e.reference is not None
        ]
        yield item


def _parts(stored: list[tuple[ArtifactEntry, str]]) -> Iterator[list[tuple[ArtifactEntry, str]]]:
    part: list[tuple[ArtifactEntry, str]] = []
    size = 0
    for entry, kind in stored:
        length = len(entry.path) + len(entry.digest) + len(entry.reference or "") + 200
        if part and (len(part) >= _FILES_PER_PART or size + length > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append((entry, kind))
        size += length
    yield part


def _files_below(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of all files below a folder, each with its path in it; links are not followed."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            path = os.path.join(parent, file)
            yield path, os.path.relpath(path, folder).replace(os.sep, "/")
