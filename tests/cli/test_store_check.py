"""`runvitals store check` names the contents of files that are missing or damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing import pairing
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.sqlite import SqliteChunks
from tests.store.samples.test_damaged_objects import blank, empty, extend, flip, remove, truncate

NOW = 1_790_000_000_000
CONTENTS = [b"a picture" * 100, b"a table" * 100]
SHA256 = hashlib.sha256(CONTENTS[0]).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of a store with two files of a run."""
    folder = tmp_path / "store"
    with (
        SqliteChunks(str(folder)) as samples,
        open_metadata_store(str(folder / "catalogue.db")) as metadata_store,
    ):
        pairing.pair(samples, metadata_store)
        (writer,) = metadata_store.writers.join([WriterRegistration("otter", "media.node1.7.1")], NOW)
        files = ReceivedFiles(str(folder / "files"), metadata_store, lambda: NOW)
        for content in CONTENTS:
            files.append(writer.run_id, hashlib.sha256(content).hexdigest(), len(content), 0, [content])
    return folder


@pytest.mark.parametrize("damage", [remove, empty, truncate, extend, flip, blank])
def test_a_damaged_content_is_named(
    store: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", "check", "--store", str(store)]) == 0
    damage(store / "files" / "contents" / SHA256[:2] / SHA256)
    capsys.readouterr()
    assert main(["store", "check", "--store", str(store)]) == 1
    problem, count = capsys.readouterr().out.splitlines()
    assert problem.startswith(f"{store / 'files' / 'contents'}: the content {SHA256} of 900 bytes is ")
    assert count == "1 problem"


def test_contents_in_a_bucket_are_not_looked_for_in_the_folder(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (store / "files" / "contents").rename(store / "moved-to-a-bucket")
    assert main(["store", "check", "--store", str(store)]) == 0
    assert "no problems found" in capsys.readouterr().out
