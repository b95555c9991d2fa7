"""Media and saved files of a run on a server: the same as `open_run` returns for the same run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import runvitals
from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.readers.journals.run_handle import open_run
from runvitals.readers.servers import Client, ServerError, UnknownRun
from runvitals.sdk.media.base import Media
from runvitals.sdk.media.run_files import RunFiles
from tests.readers.journals.journals import T0, Trainer


class LoggedRun:
    """A run with media."""

    def __init__(self, directory: Path) -> None:
        Trainer(directory).log(T0, 0, loss=0.5)
        self.folder = paths.run_dir("abc", str(directory))
        self.files = RunFiles(self.folder)
        about = {"run": "abc", "project": "digits", "host": "node1", "role": "media"}
        self.journal = JournalWriter(self.folder, "media.node1.9.1", about)

    def log(self, key: str, step: int, value: Media) -> None:
        self.record(key, value.kind, step, {"kind": value.kind, **value.item(self.files)})

    def record(self, key: str, kind: str, step: int, item: dict[str, Any]) -> None:
        value = {"t": T0 + step, "step": step, "key": key, "kind": kind, "items": [item]}
        assert self.journal.json(frames.MEDIA, value)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[LoggedRun]:
    logged = LoggedRun(tmp_path)
    yield logged
    logged.journal.close()


def test_media_are_those_of_the_journal(run: LoggedRun, client: Client, tmp_path: Path) -> None:
    for step in range(5):
        run.log("samples", step, runvitals.Image(numpy.full((4, 4), step, "uint8"), caption=f"at {step}"))
        run.log("weights/ü", step, runvitals.Histogram([1.0, step]))
    run.record("model/é.pt", "file", 4, {"kind": "file", **run.files.add(b"weights")})
    here, there = open_run("abc", str(tmp_path)), client.run("abc")
    assert there.media_keys() == here.media_keys()
    for key in ("samples", "weights/ü", "unknown"):
        assert list(there.media(key)) == here.media(key)
    assert [each.step for each in there.media("samples", first_step=1, last_step=3)] == [1, 2, 3]
    (mine,), (theirs,) = here.files(), there.files()
    assert (theirs.name, theirs.sha256, theirs.path) == (mine.name, mine.sha256, None)
    assert there.content(theirs) == b"weights"


def test_pages_are_fetched_as_needed(run: LoggedRun, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.readers.servers.remote_files._PAGE", 2)
    for step in range(5):
        run.log("notes", step, runvitals.Text(f"at {step}"))
        run.log(f"key{step}", 0, runvitals.Histogram([1.0]))
    there = client.run("abc")
    assert [there.content(each.items[0]) for each in there.media("notes")] == [b"at %d" % n for n in range(5)]
    assert len(there.media_keys()) == 6


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 25])
def test_a_content_is_downloaded_in_parts(
    run: LoggedRun, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("runvitals.readers.servers.remote_files._PART_BYTES", 10)
    content = bytes(range(size))
    run.record("x", "file", 0, {"kind": "file", **run.files.add(content)})
    there, target = client.run("abc"), tmp_path / "downloaded"
    target.write_bytes(b"before")
    there.download(there.files()[0], target)
    assert target.read_bytes() == content == there.content(there.files()[0])


def test_tables_have_rows(run: LoggedRun, client: Client) -> None:
    run.log("worst", 0, runvitals.Table(["label", "score"], [["a", 1.5], ["b", None]]))
    (table,) = next(client.run("abc").media("worst")).items
    assert json.loads(client.run("abc").content(table))["rows"] == [["a", 1.5], ["b", None]]


def test_what_has_no_file(run: LoggedRun, client: Client) -> None:
    run.log("weights", 0, runvitals.Histogram([1.0, 2.0]))
    run.record("failed", "image", 0, {"kind": "image", "error": "no space left"})
    there = client.run("abc")
    with pytest.raises(ValueError, match="value is in the item itself"):
        there.content(next(there.media("weights")).items[0])
    with pytest.raises(ValueError, match="no file: no space left"):
        there.content(next(there.media("failed")).items[0])


def test_a_content_that_has_not_arrived_or_is_another_leaves_no_file(
    run: LoggedRun, client: Client, tmp_path: Path
) -> None:
    run.record("x", "file", 0, {"kind": "file", **run.files.add(b"content")})
    there = client.run("abc")
    (file,) = there.files()
    stored = Path(paths.content_path(run.folder, file.sha256))
    stored.write_bytes(b"damaged")
    with pytest.raises(ServerError, match="another content"):
        there.download(file, tmp_path / "downloaded")
    stored.unlink()
    with pytest.raises(UnknownRun, match="no file"):
        there.download(file, tmp_path / "downloaded")
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("downloaded")]
