"""Contents of files and unfinished uploads: whatever happens, a content is there completely or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from runvitals.store.files.folder_store import FolderFileStore
from runvitals.store.files.uploads import ContentDiffers, Uploads, WrongOffset

CONTENTS = [b"", b"a", b"bc" * 10, bytes(64)]
RUNS = st.integers(1, 2)
DIGESTS = [hashlib.sha256(content).hexdigest() for content in CONTENTS]


class UploadMachine(RuleBasedStateMachine):
    """Pieces of several files for several runs, in any order, with restarts and damage in between."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.restart()
        self.arrived: dict[tuple[int, str], bytes] = {}
        self.stored: dict[str, bytes] = {}

    @rule()
    def restart(self) -> None:
        self.uploads = Uploads(os.path.join(self.folder, "uploads"))
        self.store = FolderFileStore(os.path.join(self.folder, "contents"))

    @rule(run=RUNS, which=st.integers(0, 3), offset=st.integers(0, 70), length=st.integers(0, 70))
    def append(self, run: int, which: int, offset: int, length: int) -> None:
        content, sha256 = CONTENTS[which], DIGESTS[which]
        piece = content[offset : offset + length]
        before = self.arrived.get((run, sha256), b"")

        def add() -> bool:
            return self.uploads.append(
                run, sha256, len(content), offset, [piece], lambda path: self.store.take(sha256, path)
            )

        if offset + len(piece) > len(content):
            with pytest.raises(ValueError, match="bytes at byte"):
                add()
            return
        if offset != len(before):
            with pytest.raises(WrongOffset, match=f"begins at byte {len(before)}"):
                add()
            return
        complete = add()
        self.arrived[run, sha256] = before + piece
        assert complete == (before + piece == content)
        if complete:
            self.stored[sha256] = content
            del self.arrived[run, sha256]

    @rule(run=RUNS, which=st.integers(1, 3))
    def damage(self, run: int, which: int) -> None:
        """As after a power failure: the file has its length, and not all of its bytes."""
        sha256 = DIGESTS[which]
        there = self.arrived.get((run, sha256))
        if which == 3 or not there:
            return  # zeros are what it holds anyway
        Path(self.folder, "uploads", f"{run}-{sha256}").write_bytes(bytes(len(there)))
        rest = CONTENTS[which][len(there) :]
        with pytest.raises(ContentDiffers):
            self.uploads.append(run, sha256, len(CONTENTS[which]), len(there), [rest], os.unlink)
        del self.arrived[run, sha256]

    @rule(which=st.integers(0, 3))
    def remove(self, which: int) -> None:
        self.store.remove([DIGESTS[which]])
        self.stored.pop(DIGESTS[which], None)

    @invariant()
    def contents_are_complete(self) -> None:
        assert {content.sha256 for content in self.store.contents()} == set(self.stored)
        for sha256, content in self.stored.items():
            with self.store.open(sha256) as file:
                assert file.read() == content

    @invariant()
    def offsets_are_what_arrived(self) -> None:
        for run in (1, 2):
            for sha256 in DIGESTS:
                assert self.uploads.offset(run, sha256) == len(self.arrived.get((run, sha256), b""))


TestUploads = UploadMachine.TestCase
TestUploads.settings = settings(max_examples=40, stateful_step_count=30)


@given(name=st.text(max_size=80))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_only_digests_are_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="invalid SHA-256"):
        Uploads(str(tmp_path / "uploads")).offset(1, name)


def test_a_link_in_the_place_of_a_content_is_not_followed_to_a_device(tmp_path: Path) -> None:
    store = FolderFileStore(str(tmp_path))
    (tmp_path / DIGESTS[1][:2]).mkdir(exist_ok=True)
    os.mkfifo(tmp_path / DIGESTS[1][:2] / DIGESTS[1])
    with pytest.raises(OSError, match="not a regular file"):
        store.open(DIGESTS[1])


def test_abandoned_uploads_are_removed(tmp_path: Path) -> None:
    uploads = Uploads(str(tmp_path))
    for run in (1, 2):
        uploads.append(run, DIGESTS[2], 20, 0, [b"bc"], os.unlink)
    os.utime(tmp_path / f"1-{DIGESTS[2]}", (100, 100))
    assert uploads.total_bytes() == 4
    assert uploads.remove_before(101) == 1
    assert [uploads.offset(run, DIGESTS[2]) for run in (1, 2)] == [0, 2]
