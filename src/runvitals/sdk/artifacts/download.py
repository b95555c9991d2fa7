"""Downloads the files of a version, several at a time, and compares a folder with them.

What is in the folder with the right content is left as it is.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple
from urllib.parse import quote_plus

from runvitals.base.parallel_work import failures_of
from runvitals.base.progress import TransferProgress
from runvitals.model import small_files
from runvitals.model.artifact_names import checked_path
from runvitals.model.artifacts import ArtifactEntry
from runvitals.model.limits import PIECE_BYTES, SMALL_FILE_BYTES
from runvitals.monitoring.settings.messages import notify
from runvitals.sdk.artifacts import references
from runvitals.sdk.artifacts.local_paths import check_apart, local_path
from runvitals.sdk.artifacts.lookup import FileSource

_AT_ONCE: Final = 8
_BUFFER_BYTES: Final = 1 << 20
_ADDRESS_CHARACTERS: Final = 6000
"""Proxies refuse longer addresses, mostly from 8,192 on."""
_PARAMETER: Final = len("&path=")


class FolderDifferences(NamedTuple):
    """How a folder differs from a version: paths of files, sorted."""

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    extra: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return a line for each file."""
        return [f"{kind}: {path}" for kind, paths in self._asdict().items() for path in paths]


class FileSelection(NamedTuple):
    """What of a version is wanted.

    Args:
        include: only files whose path matches one of these globs, as `*.parquet`, whose `*` also means `/`;
            empty: all.
        prefix: only files whose path begins so.
        missing_references: leave out references that cannot be read any more, or have changed.
    """

    include: Sequence[str] = ()
    prefix: str = ""
    missing_references: bool = False

    def of(self, entries: Iterable[ArtifactEntry]) -> list[ArtifactEntry]:
        """Return those of some entries.

        Raises:
            ValueError: a glob matches none.
        """
        listed = [entry for entry in entries if entry.path.startswith(self.prefix)]
        for glob in self.include:
            if not any(fnmatchcase(entry.path, glob) for entry in listed):
                raise ValueError(f"no file of the artifact matches {glob!r}")
        if not self.include:
            return listed
        return [entry for entry in listed if any(fnmatchcase(entry.path, glob) for glob in self.include)]


def download(source: FileSource, folder: str, selection: FileSelection) -> None:
    """Write files of a version below a folder, and the references that can be read and checked.

    Raises:
        ValueError: a link in the folder leads out of it, or two files would be one.
        ServerError, OSError: a file could not be fetched, or not be written. What was written stays.
    """
    os.makedirs(folder, exist_ok=True)
    entries = [entry for entry in selection.of(source.entries()) if _is_kept_or_readable(entry)]
    unknown = [entry for entry in entries if entry.reference and not references.is_known(entry)]
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        what = f"{unknown[0].reference}{more}"
        notify(f"{what}: the content is not checked, as it was logged without a checksum")
    paths = {entry.path: local_path(folder, checked_path(entry.path)) for entry in entries}
    written_paths: set[str] = set()
    with TransferProgress(
        "downloading", sum(entry.bytes or 0 for entry in entries), len(entries)
    ) as progress:

        def fetch(entry: ArtifactEntry) -> None:
            try:
                copy(source, entry, paths[entry.path])
            except OSError:
                if entry.reference is None or not selection.missing_references:
                    raise
                del paths[entry.path]
            else:
                written_paths.add(entry.path)

        def fetch_all(batch: Sequence[ArtifactEntry]) -> None:
            absent = [entry for entry in batch if not has_content(entry, paths[entry.path])]
            together = (
                source.copy_small({entry: paths[entry.path] for entry in absent})
                if len(absent) > 1
                else set()
            )
            written_paths.update(entry.path for entry in together)
            for entry in absent:
                if entry not in together:
                    fetch(entry)
            progress.add(sum(entry.bytes or 0 for entry in batch), len(batch))

        try:
            _do_all(fetch_all, _parts(entries))
        finally:
            source.end()
    check_apart(paths, written_paths)


def _parts(entries: Iterable[ArtifactEntry]) -> list[list[ArtifactEntry]]:
    """Return entries in lists: of small files as many as come in one response, of others one each."""
    parts: list[list[ArtifactEntry]] = []
    small: list[ArtifactEntry] = []
    room = characters = 0
    for entry in entries:
        if entry.sha256 is None or entry.bytes is None or entry.bytes > SMALL_FILE_BYTES:
            parts.append([entry])
            continue
        size, length = small_files.HEAD_BYTES + entry.bytes, len(quote_plus(entry.path)) + _PARAMETER
        if size > room or length > characters:
            small, room, characters = [], PIECE_BYTES, max(_ADDRESS_CHARACTERS, length)
            parts.append(small)
        small.append(entry)
        room -= size
        characters -= length
    return parts


def copy(source: FileSource, entry: ArtifactEntry, path: str) -> None:
    """Write the content of a file, or of a reference, to a path."""
    if entry.reference is None:
        source.copy(entry, path)
    else:
        references.fetch(entry, path)


def has_content(entry: ArtifactEntry, path: str) -> bool:
    """Return whether a regular file at a path has the content of an entry."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(status.st_mode) or entry.bytes not in (None, status.st_size):
        return False
    if entry.reference is not None:
        return references.matches(entry, path) is True
    if entry.sha256 is None:
        return references.md5_of(path) == entry.digest
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BUFFER_BYTES):
            digest.update(block)
    return digest.hexdigest() == entry.sha256


def differences(entries: Iterable[ArtifactEntry], folder: str) -> FolderDifferences:
    """Compare the files below a folder with those of a version.

    A reference may be there or not. Of `file://` its content is compared, of others the size.
    """
    entry_of = {entry.path: entry for entry in entries}
    local_paths = {
        os.path.relpath(os.path.join(parent, name), folder).replace(os.sep, "/")
        for parent, _, names in os.walk(folder)
        for name in names
    }
    missing = [
        path for path, entry in entry_of.items() if path not in local_paths and entry.reference is None
    ]
    changed: list[str] = []

    def compare(path: str) -> None:
        entry, local = entry_of[path], os.path.join(folder, *path.split("/"))
        if entry.reference is not None and os.path.isfile(local):
            same = references.matches(entry, local) is not False
        else:
            same = has_content(entry, local)
        if not same:
            changed.append(path)

    _do_all(compare, sorted(local_paths & entry_of.keys()))
    return FolderDifferences(
        tuple(sorted(missing)), tuple(sorted(changed)), tuple(sorted(local_paths - entry_of.keys()))
    )


def _is_kept_or_readable(entry: ArtifactEntry) -> bool:
    return entry.reference is None or references.is_readable(entry)


def _do_all(work: Callable[..., None], items: Sequence[object]) -> None:
    """Do something with each item, several at a time; what fails first is raised, and no other begun."""
    for error in failures_of(work, items, _AT_ONCE):
        raise error
