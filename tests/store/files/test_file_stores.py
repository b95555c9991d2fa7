"""A folder and the buckets of all providers keep contents in the same way, and check signatures."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.buckets import open_bucket, open_store
from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.files.interface import FileStore
from tests.buckets.azure_service import ACCOUNT, ACCOUNT_KEY, CONTAINER, azurite
from tests.buckets.gcs_service import GoogleService, service_account
from tests.buckets.s3_service import ACCESS_KEY, SECRET_KEY, ObjectService

PUT_HEADERS = {"x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream"}
KEYS = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}


@pytest.fixture
def s3() -> Iterator[ObjectService]:
    service = ObjectService()
    yield service
    service.close()


def s3_location(service: ObjectService, prefix: str = "runvitals/") -> BucketLocation:
    return BucketLocation("s3", service.bucket, prefix, service.url, "eu-central-1", secret=KEYS)


@pytest.fixture
def bucket(s3: ObjectService) -> FileStore:
    return open_store(s3_location(s3))


@pytest.fixture
def google() -> Iterator[FileStore]:
    service = GoogleService()
    secret = {"service_account": service_account()}
    yield open_store(BucketLocation("gcs", service.bucket, "runvitals/", service.url, secret=secret))
    service.close()


@pytest.fixture(scope="module")
def azure_endpoint() -> Iterator[str]:
    with azurite() as endpoint:
        yield endpoint


@pytest.fixture
def azure(azure_endpoint: str, tmp_path: Path) -> FileStore:
    secret, prefix = {"account_key": ACCOUNT_KEY}, f"{tmp_path.name}/"
    location = BucketLocation("azure", CONTAINER, prefix, azure_endpoint, account=ACCOUNT, secret=secret)
    return open_store(location)


@pytest.fixture(params=["folder", "bucket", "google", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderFileStore(str(tmp_path / "contents"))
    bucket: FileStore = request.getfixturevalue(request.param)
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


def test_contents_larger_than_a_part_are_joined(store: FileStore, tmp_path: Path) -> None:
    content = os.urandom(9 << 20)
    sha256 = keep(store, tmp_path, content)
    with store.open(sha256) as file:
        assert file.read() == content


@pytest.mark.parametrize("provider", ["bucket", "google", "azure"])
def test_a_signed_address_is_of_one_content_and_method(
    provider: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store: FileStore = request.getfixturevalue(provider)
    first, second = keep(store, tmp_path, b"first"), keep(store, tmp_path, b"second")
    address = store.signed_address(first, "GET", 300)
    assert address is not None
    with urlopen(address) as response:
        assert response.read() == b"first"
    writing = Request(address, b"other", PUT_HEADERS, method="PUT")
    for refused in (Request(address.replace(first, second)), writing):
        with pytest.raises(HTTPError) as error:
            urlopen(refused)
        error.value.close()
        assert error.value.code == 403
    address = store.signed_address(second, "PUT", 300)
    assert address is not None
    with urlopen(Request(address, b"written", PUT_HEADERS, method="PUT")) as response:
        assert response.status in (200, 201)
    with store.open(second) as file:
        assert file.read() == b"written"


def test_a_folder_has_no_addresses(tmp_path: Path) -> None:
    folder = FolderFileStore(str(tmp_path))
    assert folder.signed_address("0" * 64, "GET", 300) is None


def test_a_bucket_has_the_keys_of_the_folder(bucket: FileStore, s3: ObjectService, tmp_path: Path) -> None:
    """So that files can be copied from one to the other."""
    folder = FolderFileStore(str(tmp_path / "contents"))
    sha256 = keep(folder, tmp_path, b"content")
    keep(bucket, tmp_path, b"content")
    assert s3.keys() == [f"runvitals/{sha256[:2]}/{sha256}"]
    assert (tmp_path / "contents" / sha256[:2] / sha256).exists()


def test_other_files_of_a_bucket_are_left_alone(bucket: FileStore, s3: ObjectService, tmp_path: Path) -> None:
    sha256 = keep(bucket, tmp_path, b"content")
    for key in ("runvitals/notes.txt", f"runvitals/{sha256}", f"other/{sha256[:2]}/{sha256}"):
        s3.put(key, b"")
    assert [content.sha256 for content in bucket.contents()] == [sha256]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("forbidden", "did not store .*: AccessDenied"),
        ("full", "did not store .*: XMinioStorageFull"),
        ("short", "has 1 of the 7 bytes"),
    ],
)
def test_what_a_bucket_did_not_store_is_still_there(
    fault: str, reason: str, bucket: FileStore, s3: ObjectService, tmp_path: Path
) -> None:
    path = tmp_path / "upload"
    path.write_bytes(b"content")
    s3.fault = fault
    with pytest.raises(OSError, match=reason) as failure:
        bucket.take(hashlib.sha256(b"content").hexdigest(), str(path))
    assert SECRET_KEY not in str(failure.value)
    assert path.read_bytes() == b"content"


def test_a_content_that_ends_early_is_an_error(bucket: FileStore, s3: ObjectService, tmp_path: Path) -> None:
    sha256 = keep(bucket, tmp_path, os.urandom(600_000))
    s3.fault = "cut"
    with bucket.open(sha256) as file, pytest.raises(OSError, match="the bucket"):
        file.read()


def test_wrong_credentials_and_buckets_name_no_secret(s3: ObjectService) -> None:
    wrong = {"access_key_id": ACCESS_KEY, "secret_access_key": "another-secret"}
    location = BucketLocation("s3", s3.bucket, "", s3.url, secret=wrong)
    with pytest.raises(OSError, match=r"s3://training-.* cannot be listed: SignatureDoesNotMatch") as failure:
        open_bucket(location)
    assert "another-secret" not in f"{failure.value} {location!r}"
    missing = BucketLocation("s3", "no-such-bucket", "", s3.url, secret=KEYS)
    with pytest.raises(OSError, match="s3://no-such-bucket cannot be listed: NoSuchBucket"):
        open_bucket(missing)
    with pytest.raises(OSError, match="cannot be used"):
        open_store(BucketLocation("gcs", "training", secret={"service_account": "{}"}))


def test_a_bucket_that_nobody_answers_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gone = BucketLocation("s3", "training", "", "http://127.0.0.1:9", "eu-central-1", secret=KEYS)
    store = open_bucket(gone)
    assert caplog.messages == [
        f"the bucket {gone} does not answer: its contents are not available until it does"
    ]
    with pytest.raises(OSError, match="no connection"):
        store.check()
    with pytest.raises(OSError, match="there is no folder"):
        open_store(BucketLocation("folder", str(tmp_path / "none")))


def test_a_server_starts_beside_a_bucket_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        address = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        open_bucket(BucketLocation("s3", "training", "", address, "eu-central-1", secret=KEYS), 0.01)
    assert "does not answer" in caplog.text


def test_credentials_of_the_environment(s3: ObjectService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    open_bucket(BucketLocation.read(f"s3://{s3.bucket}/runvitals"))
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another account")
    open_bucket(s3_location(s3))  # keys of its own are not mixed with it


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://files", ("files", "")), ("s3://files/", ("files", "")), ("s3://files/a/b/", ("files", "a/b/"))],
)
def test_addresses(text: str, expected: tuple[str, str]) -> None:
    location = BucketLocation.read(text)
    assert (location.bucket, location.prefix) == expected


@pytest.mark.parametrize(
    "text", ["files", "s3://", "s3:///x", "s3://KEY:secret@files", "s3://a b", "https://files.s3"]
)
def test_invalid_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="expected s3://BUCKET"):
        BucketLocation.read(text)


def test_a_prefix_does_not_lead_out_of_it() -> None:
    with pytest.raises(ValueError, match="invalid prefix"):
        BucketLocation.read("s3://files/a/../b")
