"""What a backup contains, and whether it still does.

`manifest.json` is written last: a folder without it is no backup. `SHA256SUMS` has a line for each file, as
`sha256sum --check` reads it. In a tar file both come first, and the other files in the order of the lines.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Final

import msgspec

from runvitals.base.private_folders import make_private
from runvitals.journal.paths import sync_folder
from runvitals.server.backup.progress import Progress
from runvitals.server.database.migration import check_known
from runvitals.store import private_files
from runvitals.store.errors import MetadataStoreError, StoreError

MANIFEST: Final = "manifest.json"
SUMS: Final = "SHA256SUMS"
TAR: Final = ".tar"
METADATA: Final = "catalogue.db"
"""The metadata in a backup."""
FILES: Final = "files/contents"
"""The folder in a backup with contents of images, tables and files of runs, as in that of a store."""
_NAME: Final = re.compile(rf"[\w-]+\.db|{FILES}/[0-9a-f]{{2}}/[0-9a-f]{{64}}", re.ASCII)
_FORMAT: Final = 1
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup contains.

    Attributes:
        runvitals: the version that made it.
        begun_ms: when; what was stored before is in it.
        samples: where the samples were.
        metadata: where the metadata were.
        revision: of the tables of the metadata.
        store_id: which samples and metadata share; None if no server was ever started with them.
        rows: the number of rows of each table that has some.
        files: the number of all files in the backup.
        contents: the number of contents of images, tables and files of runs.
        bytes: of all files in the backup.
        damaged: contents that were damaged already when they were copied, by their SHA-256.
        not_included: what belongs to the server and is not in the backup, each in a sentence.
        sums: the SHA-256 of `SHA256SUMS`.
        format: of the backup.
    """

    runvitals: str
    begun_ms: int
    samples: str
    metadata: str
    revision: str
    store_id: str | None
    rows: Mapping[str, int]
    files: int
    contents: int
    bytes: int
    damaged: Sequence[str]
    not_included: Sequence[str]
    sums: str
    format: int = _FORMAT

    def summary(self) -> str:
        """Return what it is in a few words."""
        begun = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.begun_ms / 1000))
        return (
            f"a backup of {begun} by runvitals {self.runvitals}; runs: {self.rows.get('run', 0):,}, files: "
            f"{self.files:,}, {self.bytes / 1e6:,.1f} MB"
        )


class _Origin(msgspec.Struct):
    """What any version can read of a manifest."""

    format: int
    runvitals: str


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Make a folder a backup. Durable."""
    path = os.path.join(folder, MANIFEST)
    private_files.create(f"{path}.unfinished", exclusive=True)
    with open(f"{path}.unfinished", "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.unfinished", path)
    sync_folder(folder)


def read_manifest(path: str) -> Manifest:
    """Read the manifest of a backup, a folder or a tar file.

    Raises:
        StoreError: it is no complete backup, or one that this version cannot read.
    """
    with _opened(path) as files:
        return _manifest(path, files)


def _manifest(path: str, files: _Files) -> Manifest:
    try:
        with files.open(MANIFEST) as file:
            packed = file.read()
    except FileNotFoundError:
        raise StoreError(
            f"{path} is no complete backup: it has no {MANIFEST}, which is written last"
        ) from None
    try:
        origin = msgspec.json.decode(packed, type=_Origin)
        if origin.format != _FORMAT:
            raise StoreError(
                f"{path} is a backup of format {origin.format}, made by runvitals {origin.runvitals}: this "
                f"version reads format {_FORMAT}"
            )
        return msgspec.json.decode(packed, type=Manifest)
    except msgspec.DecodeError as error:
        raise StoreError(f"the {MANIFEST} of {path} is damaged: {error}") from None


def check_backup(path: str, progress: Progress) -> tuple[Manifest, list[str]]:
    """Read all of a backup; returns its manifest, and why it cannot be restored, a line each.

    Raises:
        StoreError: it is no complete backup, or nobody can say what belongs to it.
        OSError: it could not be read.
    """
    problems: list[str] = []
    done_bytes = 0
    with _opened(path) as files:
        manifest = _manifest(path, files)
        for name, expected in _sums(path, files, manifest):
            try:
                with files.open(name) as file:
                    digest, size = digest_of(file)
            except FileNotFoundError:
                problems.append(f"{name} is missing")
                continue
            done_bytes += size
            text = f"{done_bytes / 1e6:,.0f} of {manifest.bytes / 1e6:,.0f} MB read"
            progress.far(text, done_bytes, manifest.bytes)
            if digest != expected:
                problems.append(f"{name} is damaged: it has {size:,} bytes and another SHA-256")
    try:
        check_known(manifest.revision, path)
    except MetadataStoreError as error:
        problems.append(str(error))
    return manifest, problems


def database_sums(folder: str, manifest: Manifest) -> dict[str, str]:
    """Return the SHA-256 of each database in a backup, by its name.

    Raises:
        StoreError: the list is not the one of the manifest.
    """
    sums = _sums(folder, _Files(folder), manifest)
    return {name: sha256 for name, sha256 in sums if "/" not in name}


def _sums(path: str, files: _Files, manifest: Manifest) -> list[tuple[str, str]]:
    """Return the name and the SHA-256 of each file that belongs to a backup."""
    try:
        with files.open(SUMS) as file:
            packed = file.read()
    except FileNotFoundError:
        raise StoreError(f"the {SUMS} of {path} is missing") from None
    if hashlib.sha256(packed).hexdigest() != manifest.sums:
        raise StoreError(f"the {SUMS} of {path} is damaged: it is not the one that {MANIFEST} names")
    sums = [(line[66:], line[:64]) for line in packed.decode().splitlines()]
    for name, _ in sums:
        if not _NAME.fullmatch(name):  # nothing else is read or written
            raise StoreError(f"the {SUMS} of {path} names {name!r:.100}, which is no file of a backup")
    return sums


def digest_of(file: IO[bytes]) -> tuple[str, int]:
    """Return the SHA-256 of the rest of a file, and its size."""
    digest, size = hashlib.sha256(), 0
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


class Sums:
    """Writes `SHA256SUMS` in the folder of a backup.

    Args:
        total_bytes: of the files that will be added; 0 if that is not known.

    Attributes:
        files: the number of files that were added.
        contents: of them, contents of files of runs.
        bytes: of all of them.
        damaged: contents that are not what their name, a SHA-256, says.
        digest: the SHA-256 of the list, once it is closed.
    """

    def __init__(self, folder: str, progress: Progress, total_bytes: int = 0) -> None:
        self._folder = folder
        self._progress = progress
        self._total_bytes = total_bytes
        path = os.path.join(folder, SUMS)
        private_files.create(path, exclusive=True)
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `__exit__`
        self._digest = hashlib.sha256()
        self.files = self.contents = self.bytes = 0
        self.damaged: list[str] = []
        self.digest = ""

    def __enter__(self) -> Sums:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        self.digest = self._digest.hexdigest()

    def add_content(self, sha256: str, digest: str, size: int) -> None:
        """Add a content of a file, by its name."""
        self.contents += 1
        if digest != sha256:
            self.damaged.append(sha256)
        self._add(f"{FILES}/{sha256[:2]}/{sha256}", digest, size)

    def add_file(self, name: str) -> None:
        """Add another file in the folder, which is read."""
        with open(os.path.join(self._folder, name), "rb") as file:
            self._add(name, *digest_of(file))

    def _add(self, name: str, digest: str, size: int) -> None:
        line = f"{digest}  {name}\n".encode()
        self._file.write(line)
        self._digest.update(line)
        self.files += 1
        self.bytes += size
        text = f"{self.files:,} files, {self.bytes / 1e6:,.0f} MB"
        self._progress.far(text, self.bytes, self._total_bytes)


def pack(folder: str, into: str) -> None:
    """Write a backup in a folder to a tar file. Durable; the file is there when it is complete.

    Raises:
        OSError: it could not be written.
    """
    unfinished = os.path.join(folder, "backup.tar")
    private_files.create(unfinished, exclusive=True)
    with open(unfinished, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(os.path.join(folder, MANIFEST), MANIFEST)
            tar.add(os.path.join(folder, SUMS), SUMS)
            with open(os.path.join(folder, SUMS), encoding="utf-8") as sums:
                for line in sums:
                    name = line.rstrip("\n").partition("  ")[2]
                    tar.add(os.path.join(folder, name), name)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, into)
    sync_folder(os.path.dirname(os.path.abspath(into)))


def unpack(path: str, into: str) -> None:
    """Write the files of a tar file to a new folder.

    Raises:
        StoreError: it is no complete backup, or it is damaged.
    """
    make_private(into)
    with _opened(path) as files:

        def write(name: str) -> None:
            target = os.path.join(into, name)
            make_private(os.path.dirname(target))
            private_files.create(target, exclusive=True)
            with files.open(name) as reading, open(target, "wb") as writing:
                shutil.copyfileobj(reading, writing, _PIECE_BYTES)

        write(MANIFEST)
        write(SUMS)
        for name, _ in _sums(path, _Files(into), read_manifest(into)):
            try:
                write(name)
            except FileNotFoundError:
                raise StoreError(f"{name} is missing in {path}: try another backup") from None


class _Files:
    """The files of a backup in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, name: str) -> IO[bytes]:
        """Open a file; the caller closes it.

        Raises:
            FileNotFoundError: there is none.
        """
        return open(os.path.join(self._folder, name), "rb")


class _TarFiles(_Files):
    """The files of a backup in a tar file, to be opened in their order."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def open(self, name: str) -> IO[bytes]:
        """Open a file, going on from the last one."""
        while (member := self._tar.next()) is not None:
            if member.name == name and (file := self._tar.extractfile(member)) is not None:
                return file
        raise FileNotFoundError(name)


@contextmanager
def _opened(path: str) -> Iterator[_Files]:
    with ExitStack() as stack:
        if os.path.isdir(path):
            yield _Files(path)
            return
        try:
            yield _TarFiles(stack.enter_context(tarfile.open(path, mode="r:")))
        except tarfile.TarError as error:
            raise StoreError(f"{path} is no backup, or it is damaged: {error}") from None
