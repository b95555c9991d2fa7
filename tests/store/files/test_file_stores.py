"""A folder and a bucket keep contents in the same way. The bucket is moto's."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from runvitals.store.files.bucket_address import BucketAddress
from runvitals.store.files.bucket_store import BucketFileStore
from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.files.fsspec_store import FsspecFileStore
from runvitals.store.files.interface import FileStore
from tests.moto import aws_environment, moto_server

__all__ = ["moto_server"]
BUCKET = "training-files"
SECRET = "secret-of-the-test"


@pytest.fixture
def s3(moto_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an empty bucket."""
    for name, value in aws_environment(moto_server).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    yield client
    for entry in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        client.delete_object(Bucket=BUCKET, Key=entry["Key"])
    client.delete_bucket(Bucket=BUCKET)
    client.close()


@pytest.fixture
def bucket(s3: Any) -> BucketFileStore:
    return BucketFileStore(BucketAddress.read(f"s3://{BUCKET}/runvitals"))


class FailingFilesystem:
    """A file system whose library reports everything by errors of its own, with secrets in them."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} with {SECRET}")


def test_errors_of_a_library_do_not_show_secrets(tmp_path: Path) -> None:
    store = FsspecFileStore(BucketAddress.read("gs://training-files"), FailingFilesystem())
    (tmp_path / "upload").write_bytes(b"x")
    for work in (
        store.check,
        lambda: store.open("a" * 64),
        lambda: store.remove(["a" * 64]),
        lambda: list(store.contents()),
        lambda: store.take("a" * 64, str(tmp_path / "upload")),
    ):
        with pytest.raises(OSError, match=r"the bucket gs://training-files .*: RuntimeError") as error:
            work()
        assert SECRET not in str(error.value)
    assert (tmp_path / "upload").exists()


@pytest.fixture(params=["folder", "bucket", "fsspec"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderFileStore(str(tmp_path / "contents"))
    if request.param == "fsspec":
        address = BucketAddress(tmp_path.name.replace("_", "-").lower(), "runvitals/", "gs")
        return FsspecFileStore(address, MemoryFileSystem())
    bucket: BucketFileStore = request.getfixturevalue("bucket")
    return bucket


def keep(store: FileStore, folder: Path, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    path = folder / "upload"
    path.write_bytes(content)
    store.take(sha256, str(path))
    assert not path.exists()
    return sha256


def test_a_content_can_be_read_from_any_place(store: FileStore, tmp_path: Path) -> None:
    content = os.urandom(1000) * 700
    sha256 = keep(store, tmp_path, content)
    with store.open(sha256) as file:
        assert file.read() == content
        for first, count in ((0, 10), (699_990, 100), (5, 300_000), (700_000, 1), (12, 4)):
            file.seek(first)
            assert file.read(count) == content[first : first + count]


def test_contents_are_listed_and_removed(store: FileStore, tmp_path: Path) -> None:
    before_s = time.time() - 60
    kept = {keep(store, tmp_path, name) for name in (b"", b"one", b"two")}
    keep(store, tmp_path, b"two")
    assert {content.sha256 for content in store.contents()} == kept
    assert all(content.changed_s > before_s for content in store.contents())
    gone = hashlib.sha256(b"one").hexdigest()
    store.remove([gone, "0" * 64])
    assert {content.sha256 for content in store.contents()} == kept - {gone}
    with pytest.raises(FileNotFoundError):
        store.open(gone)
    store.remove([])


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "/x"])
def test_only_digests_are_names(store: FileStore, tmp_path: Path, name: str) -> None:
    (tmp_path / "upload").write_bytes(b"")
    for work in (
        store.open,
        lambda name: store.remove([name]),
        lambda name: store.take(name, str(tmp_path / "upload")),
    ):
        with pytest.raises(ValueError, match="invalid SHA-256"):
            work(name)


def test_a_bucket_has_the_keys_of_the_folder(bucket: BucketFileStore, s3: Any, tmp_path: Path) -> None:
    """So that files can be copied from one to the other."""
    folder = FolderFileStore(str(tmp_path / "contents"))
    sha256 = keep(folder, tmp_path, b"content")
    keep(bucket, tmp_path, b"content")
    (entries,) = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert entries["Key"] == f"runvitals/{sha256[:2]}/{sha256}"
    assert (tmp_path / "contents" / sha256[:2] / sha256).exists()


def test_other_files_of_a_bucket_are_left_alone(bucket: BucketFileStore, s3: Any, tmp_path: Path) -> None:
    sha256 = keep(bucket, tmp_path, b"content")
    for key in ("runvitals/notes.txt", f"runvitals/{sha256}", f"other/{sha256[:2]}/{sha256}"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"")
    assert [content.sha256 for content in bucket.contents()] == [sha256]


def test_failures_name_the_bucket_and_no_secret(s3: Any, tmp_path: Path) -> None:
    missing = BucketFileStore(BucketAddress.read("s3://no-such-bucket"))
    with pytest.raises(OSError, match="s3://no-such-bucket cannot be listed: NoSuchBucket") as failure:
        missing.check()
    assert SECRET not in str(failure.value)
    path = tmp_path / "upload"
    path.write_bytes(b"content")
    with pytest.raises(OSError, match="did not store") as failure:
        missing.take("0" * 64, str(path))
    assert SECRET not in str(failure.value)
    assert path.read_bytes() == b"content"


def test_without_credentials(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(OSError, match="NoCredentialsError"):
        BucketFileStore(BucketAddress.read(f"s3://{BUCKET}")).check()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://files", ("files", "")), ("s3://files/", ("files", "")), ("s3://files/a/b/", ("files", "a/b/"))],
)
def test_addresses(text: str, expected: tuple[str, str]) -> None:
    assert BucketAddress.read(text)[:2] == expected


@pytest.mark.parametrize(
    "text", ["files", "s3://", "s3:///x", "s3://KEY:secret@files", "s3://a b", "https://files.s3"]
)
def test_invalid_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="expected s3://BUCKET"):
        BucketAddress.read(text)
