"""Downloads of artifacts: what is there stays, globs, references, comparing a folder, and what is shown."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

import runvitals
from runvitals.base.progress import TransferProgress
from runvitals.cli import main
from runvitals.readers.journals.artifacts import LocalVersion
from runvitals.sdk.artifacts.references import ReferenceChanged, identity
from tests.buckets.s3_service import ACCESS_KEY, SECRET_KEY, ObjectService


@pytest.fixture
def artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runvitals.Artifact]:
    """A logged artifact `numbers` of twelve files in two folders, and the data folder as the setting."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path / "data"))
    with runvitals.init(project="digits", mode="offline") as run:
        new = runvitals.Artifact("numbers", "dataset")
        for number in range(6):
            for folder in ("train", "test"):
                with new.new_file(f"{folder}/{number}.txt") as file:
                    file.write(f"{folder} {number}")
        yield run.log_artifact(new).wait()


def files_in(folder: str | Path) -> dict[str, str]:
    root = Path(folder)
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_only_what_is_missing_or_changed_is_fetched(
    artifact: runvitals.Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = artifact.download("all")
    complete = files_in(root)
    assert len(complete) == 12
    kept = os.stat(f"{root}/test/1.txt")
    Path(root, "test", "0.txt").unlink()
    Path(root, "train", "3.txt").write_text("train 9")  # of the same size
    Path(root, "train", "4.txt").unlink()
    Path(root, "train", "4.txt").symlink_to("5.txt")
    fetched: list[str] = []
    copy = LocalVersion.copy
    monkeypatch.setattr(
        LocalVersion, "copy", lambda self, entry, path: (fetched.append(entry.path), copy(self, entry, path))
    )
    assert files_in(artifact.download("all")) == complete
    assert sorted(fetched) == ["test/0.txt", "train/3.txt", "train/4.txt"]
    assert os.stat(f"{root}/test/1.txt").st_ino == kept.st_ino


def test_globs(artifact: runvitals.Artifact, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(files_in(artifact.download("some", include="t*/[01].txt"))) == [
        "test/0.txt",
        "test/1.txt",
        "train/0.txt",
        "train/1.txt",
    ]
    assert list(files_in(artifact.download("one", path_prefix="test/", include=["*5*"]))) == ["test/5.txt"]
    with pytest.raises(ValueError, match="no file of the artifact matches 'valid/"):
        artifact.download("none", include=["train/*", "valid/*"])
    assert main(["artifact", "get", "digits/numbers", "-o", "by command", "--include", "train/2*"]) == 0
    assert files_in("by command") == {"train/2.txt": "train 2"}
    assert capsys.readouterr().out == "by command\n"


def test_a_folder_is_compared(artifact: runvitals.Artifact, capsys: pytest.CaptureFixture[str]) -> None:
    root = artifact.download()
    artifact.verify()
    assert main(["artifact", "verify", "digits/numbers"]) == 0
    assert "has the 12 files of numbers:v0" in capsys.readouterr().out
    Path(root, "test", "0.txt").unlink()
    Path(root, "train", "3.txt").write_text("train 9")
    Path(root, "train", "new.txt").write_text("")
    with pytest.raises(ValueError, match=r"missing: test/0.txt; changed: train/3.txt; extra: train/new.txt"):
        artifact.verify(root)
    assert main(["artifact", "verify", "digits/numbers", root]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "missing: test/0.txt",
        "changed: train/3.txt",
        "extra: train/new.txt",
    ]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectService]:
    """Objects of S3, with credentials for them in the environment."""
    service = ObjectService()
    for name, value in (
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_ENDPOINT_URL", service.url),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    yield service
    service.close()


def test_a_prefix_adds_the_objects_below_it(
    artifact: runvitals.Artifact, s3: ObjectService, tmp_path: Path
) -> None:
    objects = {"raw/a.txt": b"a", "raw/sub/b b.txt": b"bb", "raw/empty": b"", "raw2/c": b"c", "top": b"t"}
    for key, content in objects.items():
        s3.put(quote(key), content)
    s3.put("raw/", b"")  # as consoles make folders
    s3.true_tags = True
    bucket = f"s3://{s3.bucket}"
    with runvitals.init(project="digits", mode="offline") as run:
        outside = runvitals.Artifact("outside", "dataset")
        found = outside.add_reference(f"{bucket}/raw/")
        assert [(entry.path, entry.bytes) for entry in found] == [
            ("a.txt", 1),
            ("empty", 0),
            ("sub/b b.txt", 2),
        ]
        assert found[2].reference == f"{bucket}/raw/sub/b b.txt"
        assert len({entry.digest for entry in found}) == 3
        outside.add_reference(f"{bucket}/raw", "named", checksum=True)
        outside.add_reference(bucket, "all", checksum=True, max_objects=5)
        (unread,) = outside.add_reference(f"{bucket}/none/", "unread", checksum=False)
        assert unread.digest == unread.reference
        logged = run.log_artifact(outside).wait()
    raw = {"a.txt": "a", "sub/b b.txt": "bb", "empty": ""}
    everything = {key: content.decode() for key, content in objects.items()}
    expected = {
        **raw,
        **{f"named/{path}": content for path, content in raw.items()},
        **{f"all/{key}": content for key, content in everything.items()},
    }
    assert files_in(logged.download("there")) == expected
    logged.verify("there")
    s3.put("raw/a.txt", b"other")
    with pytest.raises(ReferenceChanged, match="is not the one that was logged"):
        logged.download("again")
    outside = runvitals.Artifact("too many", "dataset")
    with pytest.raises(ValueError, match=r"more than 4 files below s3://.*max_objects"):
        outside.add_reference(bucket, checksum=True, max_objects=4)
    (tmp_path / "tree").mkdir()
    for name in ("x", "y"):
        (tmp_path / "tree" / name).write_text(name)
    with pytest.raises(ValueError, match=r"more than 1 files below .*tree; max_objects"):
        outside.add_reference((tmp_path / "tree").as_uri(), max_objects=1)
    with pytest.raises(OSError, match="there is nothing below it"):
        outside.add_reference(f"{bucket}/none/")
    assert outside.file_count == 0


def test_an_object_is_fetched_in_the_version_that_was_logged(
    artifact: runvitals.Artifact, s3: ObjectService
) -> None:
    s3.true_tags = True
    address = f"s3://{s3.bucket}/rows.csv"
    s3.put("rows.csv", b"before versions were kept")
    with runvitals.init(project="digits", mode="offline") as run:
        outside = runvitals.Artifact("outside", "dataset")
        assert outside.add_reference(address, "unversioned", checksum=True)[0].reference == address
        s3.keep_versions()
        s3.put("rows.csv", b"first")
        (first,) = outside.add_reference(address, checksum=True)
        assert (first.path, first.bytes) == ("rows.csv", 5)
        assert (first.reference or "").startswith(f"{address}?versionId=")
        s3.put("rows.csv", b"second")
        outside.add_reference(first.reference or "", "again.csv", checksum=True)
        logged = run.log_artifact(outside).wait()
    kept = logged.download("there", allow_missing_references=True)
    assert files_in(kept) == {"rows.csv": "first", "again.csv": "first"}


def test_references_are_fetched_and_checked(
    artifact: runvitals.Artifact,
    s3: ObjectService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    far = tmp_path / "far of 100%"
    (far / "sub").mkdir(parents=True)
    (far / "a.txt").write_text("a")
    (far / "sub" / "b.txt").write_text("b")
    handler = partial(SimpleHTTPRequestHandler, directory=str(far))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    web = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    try:
        s3.put("raw/c.txt", b"cc")
        address = f"http://127.0.0.1:{web.server_port}/a.txt"
        with runvitals.init(project="digits", mode="offline") as run:
            outside = runvitals.Artifact("outside", "dataset")
            outside.add_reference(far.as_uri(), "near")
            outside.add_reference(address, checksum=True)
            (noted,) = outside.add_reference(f"{address}?noted", "noted.txt")
            outside.add_reference(address, "unchecked.txt", checksum=False)
            (gone,) = outside.add_reference("http://127.0.0.1:1/gone", "gone.txt")
            assert (noted.bytes, gone.digest) == (1, "http://127.0.0.1:1/gone")
            outside.remove("gone.txt")
            outside.add_reference(f"s3://{s3.bucket}/raw/c.txt", checksum=True)
            outside.add_reference(f"s3://{s3.bucket}/raw/c.txt", "unknown.txt")
            logged = run.log_artifact(outside).wait()
        expected = {"near/a.txt": "a", "near/sub/b.txt": "b", "a.txt": "a", "c.txt": "cc"}
        expected |= {"noted.txt": "a", "unchecked.txt": "a"}
        assert files_in(logged.download("there")) == expected
        assert "a.txt: the content is not checked" in capsys.readouterr().err
        logged.verify("there")
        assert identity(f"s3://{s3.bucket}/raw/c.txt").bytes == 2
        (far / "a.txt").write_text("other")
        s3.put("raw/c.txt", b"ccc")
        for name in ("near/a.txt", "a.txt", "noted.txt", "c.txt"):
            with pytest.raises(ReferenceChanged, match="is not the one that was logged"):
                logged.get_entry(name).download("again")
        kept = logged.download("rest", allow_missing_references=True)
        assert files_in(kept) == {"near/sub/b.txt": "b", "unchecked.txt": "other"}
        outside = runvitals.Artifact("none", "dataset")
        with pytest.raises(OSError, match=r"cannot be read: (NoSuchKey|status 404)"):
            outside.add_reference(f"s3://{s3.bucket}/none", checksum=True)
        with pytest.raises(OSError, match=r"cannot be read: .*404"):
            outside.add_reference(f"{address}x", checksum=True)
        with pytest.raises(OSError, match="is an address of this link"):
            outside.add_reference("http://169.254.169.254/latest/meta-data", checksum=True)
        with pytest.raises(ValueError, match="cannot be read: expected file://"):
            outside.add_reference("ftp://host/x", checksum=True)
    finally:
        web.shutdown()
        thread.join()
        web.server_close()


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (io.StringIO(), "downloading: 1 of 4 files, 5.0 MB of 20.0 MB, 500.0 kB/s, 0:30 left\n"),
        (Terminal(), "\r\x1b[K██████░░░░░░░░░░░░░░░░░░ downloading: 1 of 4 files"),
    ],
)
def test_what_is_shown_of_a_long_transfer(stream: io.StringIO, expected: str) -> None:
    now = [0.0]
    progress = TransferProgress("downloading", 20_000_000, 4, stream=stream, clock=lambda: now[0])
    progress.add(1_000_000)
    assert stream.getvalue() == ""
    now[0] = 10.0
    progress.add(4_000_000, 1)
    assert stream.getvalue().startswith(expected)
    progress.end()
    assert stream.getvalue().endswith("left\n")


@pytest.mark.parametrize(("columns", "shown"), [(20, "downloading: 1 of 4"), (80, None), (0, None)])
def test_a_bar_stays_in_one_line(columns: int, shown: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((columns, 24)))
    stream = Terminal()
    monkeypatch.setattr(stream, "fileno", lambda: 1)
    now = [0.0]
    progress = TransferProgress("downloading", 20_000_000, 4, stream=stream, clock=lambda: now[0])
    now[0] = 10.0
    progress.add(5_000_000, 1)
    line = stream.getvalue().removeprefix("\r\x1b[K")
    assert shown is None or line == shown
    assert not columns or len(line) < columns
    assert "left" in line or columns == 20
