"""The files of runs that a server keeps: what no run has any more goes, whatever was interrupted."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runvitals.model.durations import DAY_MS
from runvitals.server.files.received_files import ReceivedFiles, UploadState
from runvitals.server.files.reserved_space import FileLimits, FileRejected
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.files.uploads import ContentDiffers
from tests.empty_metadata import new_metadata_store
from tests.server.database.artifacts.making import T0, logged, md5, new_project

NOW = 1_790_000_000_000
CONTENT = b"content"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def metadata_store(tmp_path: Path) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as opened:
        yield opened


@pytest.fixture
def files(tmp_path: Path, metadata_store: MetadataStore) -> ReceivedFiles:
    return ReceivedFiles(str(tmp_path / "files"), metadata_store, lambda: NOW)


def new_run(store: MetadataStore, name: str = "abc") -> int:
    (writer,) = store.writers.join([WriterRegistration(name, "media.node1.7.1", "digits")], NOW)
    return writer.run_id


def stored(tmp_path: Path, sha256: str = SHA256) -> Path:
    return tmp_path / "files" / "contents" / sha256[:2] / sha256


def append(
    files: ReceivedFiles, run_id: int, sha256: str, size: int, offset: int, piece: bytes
) -> UploadState:
    with files.uploading(run_id, sha256, size):
        return files.append(run_id, sha256, size, offset, [piece])


def make_old(path: Path) -> None:
    long_ago = time.time() - 30 * 86_400
    os.utime(path, (long_ago, long_ago))


def test_a_content_without_a_file_is_removed_when_it_is_old(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    """The server was killed after the content had its name, and before the database knew of it."""
    run_id = new_run(metadata_store)
    append(files, run_id, SHA256, len(CONTENT), 0, CONTENT)
    orphan = "0" * 64
    stored(tmp_path, orphan).parent.mkdir()
    stored(tmp_path, orphan).write_bytes(b"orphan")
    assert files.collect() == 0
    make_old(stored(tmp_path, orphan))
    make_old(stored(tmp_path))
    assert files.collect() == 1
    assert stored(tmp_path).exists()
    assert not stored(tmp_path, orphan).exists()


def test_a_content_that_is_left_behind_is_removed_later(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    """The server was killed after the database forgot the file, and before its content was removed."""
    run_id = new_run(metadata_store)
    append(files, run_id, SHA256, len(CONTENT), 0, CONTENT)
    metadata_store.runs.delete([run_id], NOW)
    metadata_store.runs.purge([run_id], NOW)
    assert metadata_store.stored_files.forget_unused(10) == [SHA256]
    make_old(stored(tmp_path))
    assert files.collect() == 1
    assert not stored(tmp_path).exists()


def test_a_lost_content_is_like_none(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    run_id = new_run(metadata_store)
    metadata_store.stored_files.add(run_id, StoredFile(SHA256, 7, "text/plain"), NOW)
    assert files.open(run_id, SHA256) is None


def test_an_upload_of_a_run_that_is_gone_leaves_nothing(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    with pytest.raises(LookupError, match="no run with id 99"):
        append(files, 99, SHA256, len(CONTENT), 0, CONTENT)
    make_old(stored(tmp_path))
    assert files.collect() == 1


def test_abandoned_uploads_go(tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore) -> None:
    run_id = new_run(metadata_store)
    append(files, run_id, SHA256, 100, 0, b"part")
    files.collect()
    (part,) = (tmp_path / "files" / "uploads").iterdir()
    make_old(part)
    files.collect()
    assert not part.exists()
    with pytest.raises(FileRejected, match="at most"):
        append(files, run_id, SHA256, files.limits.file_bytes + 1, 0, b"part")


def test_an_upload_that_arrived_before_the_server_was_killed_is_completed(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    """All of it was written, and it was not kept yet: no piece is left to send."""
    run_id = new_run(metadata_store)
    (tmp_path / "files" / "uploads" / f"{run_id}-{SHA256}").write_bytes(CONTENT)
    assert files.states(run_id, [SHA256]) == [UploadState(SHA256, len(CONTENT), False)]
    assert append(files, run_id, SHA256, len(CONTENT), len(CONTENT), b"").complete
    assert stored(tmp_path).read_bytes() == CONTENT


def test_two_processes_of_a_run_send_the_same_file(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    """The one that comes later knows an offset of before, and has nothing more to send."""
    run_id = new_run(metadata_store)
    assert not append(files, run_id, SHA256, len(CONTENT), 0, CONTENT[:3]).complete
    assert append(files, run_id, SHA256, len(CONTENT), 3, CONTENT[3:]).complete
    for offset in (3, len(CONTENT)):
        assert append(files, run_id, SHA256, len(CONTENT), offset, CONTENT[offset:]).complete
    assert not list((tmp_path / "files" / "uploads").iterdir())


def test_an_upload_that_ends_while_others_are_counted(
    tmp_path: Path, files: ReceivedFiles, metadata_store: MetadataStore
) -> None:
    """Its name is still listed, and leads to nothing."""
    run_id = new_run(metadata_store)
    (tmp_path / "files" / "uploads" / f"{run_id}-{'0' * 64}").symlink_to(tmp_path / "gone")
    assert append(files, run_id, SHA256, len(CONTENT), 0, CONTENT).complete


def test_unfinished_uploads_count_towards_the_limit_of_a_run(
    tmp_path: Path, metadata_store: MetadataStore
) -> None:
    files = ReceivedFiles(
        str(tmp_path / "files"), metadata_store, lambda: NOW, limits=FileLimits(run_bytes=100)
    )
    first, other = new_run(metadata_store), new_run(metadata_store, "other")
    append(files, first, "0" * 64, 60, 0, b"x" * 50)
    with pytest.raises(FileRejected, match="files of the run would exceed"):
        append(files, first, "1" * 64, 60, 0, b"x" * 50)
    append(files, other, "1" * 64, 60, 0, b"x" * 50)
    with pytest.raises(ContentDiffers):
        append(files, first, "0" * 64, 60, 50, b"x" * 10)
    append(files, first, "1" * 64, 60, 0, b"x" * 50)


class BusyStore(FolderFileStore):
    """While it takes a content, something else happens."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.meanwhile: Callable[[], object] = int

    def take(self, sha256: str, path: str) -> None:
        super().take(sha256, path)
        self.meanwhile()


def test_a_content_that_is_being_kept_is_not_removed(tmp_path: Path, metadata_store: MetadataStore) -> None:
    """The last run that had it was deleted just before another one sends it, and a bucket takes a while."""
    store = BusyStore(tmp_path / "contents")
    files = ReceivedFiles(str(tmp_path / "files"), metadata_store, lambda: NOW, store=store)
    before, after = new_run(metadata_store, "before"), new_run(metadata_store, "after")
    append(files, before, SHA256, len(CONTENT), 0, CONTENT)
    metadata_store.runs.delete([before], NOW)
    metadata_store.runs.purge([before], NOW)
    store.meanwhile = files.collect
    assert append(files, after, SHA256, len(CONTENT), 0, CONTENT).complete
    opened = files.open(after, SHA256)
    assert opened is not None
    with opened.file as file:
        assert file.read() == CONTENT


def test_the_file_of_an_artifact_is_kept_while_a_version_has_it(
    tmp_path: Path, metadata_store: MetadataStore
) -> None:
    now_ms = T0
    files = ReceivedFiles(str(tmp_path / "files"), metadata_store, lambda: now_ms)
    project_id = new_project(metadata_store)
    path = files.begin(len(CONTENT))
    Path(path).write_bytes(CONTENT)
    contents = metadata_store.artifacts.contents
    files.keep(path, SHA256, len(CONTENT), lambda file: contents.add(project_id, md5(CONTENT), file, T0), 0)
    version = logged(metadata_store, project_id, {"a": CONTENT})
    now_ms += 30 * DAY_MS
    assert files.collect() == 0
    file = contents.get(project_id, md5(CONTENT))
    assert file is not None
    opened = files.open_file(file)
    assert opened is not None
    with opened.file as content:
        assert content.read() == CONTENT
    metadata_store.artifacts.versions.delete(version.id, now_ms, with_aliases=True)
    assert files.collect() == 1
    assert not stored(tmp_path).exists()


def test_files_that_arrive_together_do_not_exceed_a_limit_together(
    tmp_path: Path, metadata_store: MetadataStore
) -> None:
    limits = FileLimits(total_bytes=100, free_bytes=0)
    files = ReceivedFiles(str(tmp_path / "files"), metadata_store, lambda: NOW, limits)
    first = files.begin(60)
    with pytest.raises(FileRejected, match="limit of 100 bytes"):
        files.begin(60)
    files.reserve(first, 90)
    with pytest.raises(FileRejected, match="limit of 100 bytes"):
        files.begin(20)
    files.end(first)
    files.end(files.begin(60))


def test_requests_at_once_keep_the_limit_of_a_run_together(
    tmp_path: Path, metadata_store: MetadataStore
) -> None:
    files = ReceivedFiles(
        str(tmp_path / "files"), metadata_store, lambda: NOW, FileLimits(run_bytes=100, free_bytes=0)
    )
    run_id, other, small = new_run(metadata_store), "0" * 64, b"x" * 50
    append(files, run_id, SHA256, 60, 0, b"x" * 20)
    with files.uploading(run_id, SHA256, 60), files.uploading(run_id, SHA256, 60):
        with pytest.raises(FileRejected, match="limit of 100 bytes"), files.uploading(run_id, other, 41):
            pass
        with files.uploading(run_id, other, 40):
            pass
        with pytest.raises(FileRejected, match="limit of 100 bytes"):
            files.add_small(run_id, {hashlib.sha256(small).hexdigest(): memoryview(small)})
    files.add_small(run_id, {hashlib.sha256(small).hexdigest(): memoryview(small)})
    with pytest.raises(FileRejected, match="limit of 100 bytes"), files.uploading(run_id, SHA256, 60):
        pass


def test_files_of_every_server_count_until_they_are_removed(tmp_path: Path) -> None:
    limits = FileLimits(total_bytes=100, free_bytes=0)
    with (
        new_metadata_store(tmp_path / "catalogue.db") as first_store,
        open_metadata_store(str(tmp_path / "catalogue.db")) as second_store,
    ):
        first, second = (
            ReceivedFiles(str(tmp_path / name), store, lambda: NOW, limits)
            for name, store in (("first", first_store), ("second", second_store))
        )
        run_id = new_run(first_store)
        second.end(second.begin(100))
        keep(first, run_id, b"x" * 60)
        with pytest.raises(FileRejected, match="limit of 100 bytes"):
            second.begin(60)
        first_store.runs.delete([run_id], NOW)
        first_store.runs.purge([run_id], NOW)
        assert first.collect() == 1
        for server in (first, second):
            server.end(server.begin(100))
        keep(second, new_run(second_store, "other"), b"y" * 60)
        with pytest.raises(FileRejected, match="limit of 100 bytes"):
            first.begin(60)


def keep(files: ReceivedFiles, run_id: int, content: bytes) -> None:
    assert append(files, run_id, hashlib.sha256(content).hexdigest(), len(content), 0, content).complete
