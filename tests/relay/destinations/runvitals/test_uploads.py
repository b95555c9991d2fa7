"""Files of media records: they arrive before the records, once, in pieces, whatever is interrupted."""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.model.limits import PIECE_BYTES
from runvitals.relay.destination import TooEarly, Unfinished
from runvitals.relay.destinations.runvitals import uploads
from runvitals.sdk.media.run_files import RunFiles
from runvitals.server.files.disk_space import RETRY_AFTER_S
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.reserved_space import FileLimits
from runvitals.server.metadata_store import open_metadata_store
from tests.patience import PATIENCE_S
from tests.relay.journals import HOST, MEDIA, RUN, Journal, MediaJournal, Sender
from tests.relay.receiver import now_ms
from tests.relay.recording_server import RecordingServer
from tests.server.serving import Served, serving


@pytest.fixture
def media(journal: Journal) -> Iterator[MediaJournal]:
    media = MediaJournal(journal)
    yield media
    media.journal.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "server") as running:
        yield running


def run_number(served: Served) -> int:
    (place,) = served.metadata_store.runs.places(RUN)
    return place.run_id


def received(served: Served, sha256: str) -> bytes | None:
    content = files_of(served).open(run_number(served), sha256)
    if content is None:
        return None
    with content.file as file:
        return file.read()


def files_of(served: Served) -> ReceivedFiles:
    files: ReceivedFiles = served.app.services.files
    return files


def keys(served: Served) -> list[str]:
    return [key.key for key in served.metadata_store.media.keys(run_number(served))]


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def deliver(media: MediaJournal, served: Served) -> Sender:
    sender = Sender(media.folder, served.url)
    sender.send()
    sender.kill()
    return sender


def test_files_and_records_arrive(media: MediaJournal, served: Served) -> None:
    contents = [b"", b"<svg></svg>", noise(PIECE_BYTES), noise(2 * PIECE_BYTES + 1)]
    digests = [media.log(f"file {i}", content, step=i) for i, content in enumerate(contents)]
    deliver(media, served)
    assert [received(served, sha256) for sha256 in digests] == contents
    assert keys(served) == ["file 0", "file 1", "file 2", "file 3"]
    stored = [served.metadata_store.stored_files.of_run(run_number(served), sha256) for sha256 in digests]
    assert [file.media_type for file in stored if file] == [
        "text/plain", "image/svg+xml", "application/octet-stream", "application/octet-stream",
    ]  # fmt: skip


def test_a_file_is_sent_once(media: MediaJournal, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    content = noise(3 * PIECE_BYTES)
    pieces: list[int] = []
    append = ReceivedFiles.append

    def counted(self: ReceivedFiles, *what: Any) -> Any:
        pieces.append(sum(map(len, what[-1])))
        return append(self, *what)

    monkeypatch.setattr(ReceivedFiles, "append", counted)
    media.log("a", content)
    media.log("b", content)
    deliver(media, served)
    media.log("c", content)
    deliver(media, served)
    assert sum(pieces) == len(content)
    assert keys(served) == ["a", "b", "c"]


def test_an_upload_goes_on_after_the_relay_was_killed(
    media: MediaJournal, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = noise(5 * PIECE_BYTES)
    sha256 = media.log("checkpoint", content)
    monkeypatch.setattr(uploads, "TURN_S", 0.0)  # one piece a turn
    sender = Sender(media.folder, served.url)
    for _ in range(3):
        assert sender.delivery.step(0.0, flush=True)
    sender.kill()
    arrived = files_of(served).states(run_number(served), [sha256])[0]
    assert 0 < arrived.offset < len(content)
    assert keys(served) == []  # the record waits for its file
    deliver(media, served)
    assert received(served, sha256) == content
    assert keys(served) == ["checkpoint"]


def test_rows_do_not_wait_for_files(
    journal: Journal, media: MediaJournal, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    media.log("checkpoint", noise(4 * PIECE_BYTES))
    journal.log(1, 7, loss=0.5)
    monkeypatch.setattr(uploads, "TURN_S", 0.0)
    sender = Sender(media.folder, served.url)
    assert sender.delivery.step(0.0, flush=True)
    assert keys(served) == []
    assert served.metadata_store.metrics.find({"loss"})
    sender.send()
    sender.kill()
    assert keys(served) == ["checkpoint"]


def test_a_damaged_upload_starts_again(media: MediaJournal, served: Served, tmp_path: Path) -> None:
    content = noise(2 * PIECE_BYTES + 9)
    sha256 = media.log("a", content)
    sender = Sender(media.folder, served.url)
    media.record("registers the run", [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uploads, "TURN_S", 0.0)
        sender.delivery.step(0.0, flush=True)
    sender.kill()
    (part,) = (tmp_path / "server" / "files" / "uploads").iterdir()
    part.write_bytes(bytes(part.stat().st_size))  # as after a power failure
    deliver(media, served)
    assert received(served, sha256) == content


def test_a_file_that_is_gone_does_not_hold_up_the_rest(media: MediaJournal, served: Served) -> None:
    gone, kept = media.log("gone", b"gone"), media.log("kept", b"kept")
    os.unlink(paths.content_path(media.folder, gone))
    changed = media.log("changed", b"changed")
    Path(paths.content_path(media.folder, changed)).write_bytes(b"x")
    sender = deliver(media, served)
    assert keys(served) == ["gone", "kept", "changed"]
    assert [received(served, sha256) for sha256 in (gone, kept, changed)] == [None, b"kept", None]
    assert "cannot be read: No such file" in sender.cursor.rejection
    assert "has 1 bytes instead of 7" in sender.cursor.rejection


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (FileLimits(file_bytes=100), "this server accepts at most 100"),
        (FileLimits(run_bytes=100), "files of the run would exceed"),
        (FileLimits(total_bytes=100), "files of this server would exceed"),
    ],
    ids=["file", "run", "total"],
)
def test_limits_of_the_server_hold_up_nothing_else(
    journal: Journal, media: MediaJournal, tmp_path: Path, limits: FileLimits, reason: str
) -> None:
    folder = tmp_path / "limited"
    folder.mkdir()
    with serving(folder) as served:
        files_of(served).limits = limits
        sha256 = media.log("large", noise(1000))
        journal.log(1, 1, loss=0.25)
        sender = deliver(media, served)
        assert reason in sender.cursor.rejection
        assert keys(served) == ["large"]
        assert received(served, sha256) is None
        assert served.metadata_store.metrics.find({"loss"})


def test_what_a_full_disk_refuses_is_kept_and_holds_up_nothing_else(
    journal: Journal, media: MediaJournal, served: Served
) -> None:
    before, files_of(served).limits = files_of(served).limits, FileLimits(free_bytes=1 << 60)
    sha256 = media.log("large", noise(1000))
    journal.log(1, 1, loss=0.25)
    sender = Sender(media.folder, served.url)
    sender.send()
    assert "503 the disk of this server has no space for the file" in sender.cursor.held_why
    assert (sender.cursor.counts["rejected"], sender.cursor.held_records) == (0, 2)
    assert served.metadata_store.metrics.find({"loss"})
    files_of(served).limits = before
    sender.delivery.step(1.0)
    assert received(served, sha256) is None  # the server asked to wait
    sender.delivery.step(RETRY_AFTER_S)
    assert received(served, sha256) == noise(1000)
    assert keys(served) == ["large"]
    assert not sender.cursor.held
    sender.kill()


def test_a_server_that_answers_507_gets_the_file_later(media: MediaJournal, target: RecordingServer) -> None:
    media.log("large", noise(1000))
    no_offset = {"files": [{"sha256": hashlib.sha256(noise(1000)).hexdigest(), "offset": 0}]}
    ack, full = {"stored": True}, {"error": "the disk is full"}
    responses = ((200, ack), (200, no_offset), (507, full), (200, ack), (200, ack))
    target.responses.extend((status, {}, json.dumps(body).encode()) for status, body in responses)
    sender = Sender(media.folder, target.url)
    sender.send()
    assert sender.cursor.held_why == "the server cannot store files now: 507 the disk is full"
    assert sender.cursor.counts["rejected"] == 0
    sender.kill()


def test_a_client_cannot_exceed_a_limit_by_naming_another_size_later(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        envelope = {"run": "abc", "writer": "w", "seq": 1, "keys": ["cpu"], "t": [now_ms()], "v": [[1.0]]}
        httpx.post(f"{served.url}/api/v1/ingest", json=envelope, timeout=PATIENCE_S).raise_for_status()
        files_of(served).limits = FileLimits(file_bytes=100)
        url = f"{served.url}/api/v1/runs/abc/files/{hashlib.sha256(b'a' * 200).hexdigest()}"

        def put(offset: int, size: int) -> int:
            where = {"offset": offset, "size": size}
            return httpx.put(url, params=where, content=b"a" * 50, timeout=PATIENCE_S).status_code

        assert (put(0, 100), put(50, 200)) == (200, 413)


def test_a_server_of_an_earlier_version_gets_the_records_later(
    journal: Journal, media: MediaJournal, tmp_path: Path
) -> None:
    media.log("image", b"<svg></svg>")
    journal.log(1, 1, loss=0.25)
    with serving(tmp_path / "old", files=None) as served:
        sender = deliver(media, served)
        assert "needs a later version" in sender.cursor.held_why
        assert keys(served) == []
        assert served.metadata_store.metrics.find({"loss"})
    with serving(tmp_path / "old") as served:
        sender = Sender(media.folder, served.url)
        sender.delivery.step(0.0)
        sender.kill()
        assert keys(served) == ["image"]


def test_a_turn_ends_in_time(tmp_path: Path) -> None:
    """Uploads give way to other writers, and go on where they stopped."""
    files = RunFiles(str(tmp_path))
    item = files.add(noise(3 * PIECE_BYTES))
    now = [0.0]
    sent: list[int] = []

    class Answer:
        status = 200
        retry_after_s = None

        def __init__(self, body: bytes) -> None:
            self.body = body

    def request(method: str, path: str, body: bytes, headers: Any) -> Any:
        now[0] += 1.5
        arrived = sum(sent)
        if method == "POST":
            return Answer(b'{"files": [{"sha256": "x", "offset": %d, "complete": false}]}' % arrived)
        sent.append(len(body))
        arrived = sum(sent)
        complete = b"true" if arrived == item["bytes"] else b"false"
        return Answer(b'{"offset": %d, "complete": %b}' % (arrived, complete))

    note = type("N", (), {"seq": 3, "value": {"items": [item]}})()
    made = uploads.FileUploads(str(tmp_path), RUN, [request], lambda: now[0])
    for _ in range(2):
        with pytest.raises(Unfinished):
            made.upload([note], None)
    assert made.upload([note], None) == {}
    assert sent == [PIECE_BYTES] * 3


def test_nobody_gets_a_file_by_its_digest(served: Served, media: MediaJournal, tmp_path: Path) -> None:
    """A run of another project that names the file does not get it."""
    sha256 = media.log("secret", b"secret")
    deliver(media, served)
    other = paths.run_dir("other", str(tmp_path / "elsewhere"))
    writer = JournalWriter(
        other, MEDIA, {"run": "other", "project": "theirs", "host": HOST, "role": "media", "pid": 7}
    )
    item = {"kind": "text", "sha256": sha256, "bytes": 6, "type": "text/plain"}
    value = {"t": now_ms(), "step": 0, "key": "stolen", "kind": "text", "items": [item]}
    writer.json(frames.MEDIA, value)
    writer.close()
    sender = Sender(other, served.url)
    sender.send()
    sender.kill()
    (place,) = served.metadata_store.runs.places("other")
    assert [key.key for key in served.metadata_store.media.keys(place.run_id)] == ["stolen"]
    assert files_of(served).open(place.run_id, sha256) is None


def test_the_digest_is_checked(tmp_path: Path) -> None:
    metadata_store = open_metadata_store(str(tmp_path / "catalogue.db"))
    files = ReceivedFiles(str(tmp_path / "files"), metadata_store, now_ms)
    with metadata_store, pytest.raises(Exception, match="does not have the SHA-256"):
        files.append(1, hashlib.sha256(b"other").hexdigest(), 7, 0, [b"content"])


def test_small_files_are_sent_together(
    media: MediaJournal, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [*(noise(10_000, number) for number in range(250)), noise(70_000), b"", noise(5)]
    digests = [media.log(f"image-{number}", content) for number, content in enumerate(contents)]
    alone: list[int] = []
    append = ReceivedFiles.append

    def counted(self: ReceivedFiles, run_id: int, sha256: str, size: int, *rest: Any) -> Any:
        alone.append(size)
        return append(self, run_id, sha256, size, *rest)

    monkeypatch.setattr(ReceivedFiles, "append", counted)
    deliver(media, served)
    assert [received(served, sha256) for sha256 in digests] == contents
    assert alone == [70_000]
    assert len(keys(served)) == len(contents)


def test_an_earlier_server_gets_small_files_one_by_one(media: MediaJournal) -> None:
    digests = [media.log(f"image-{number}", noise(100, number)) for number in range(3)]
    calls: list[tuple[str, str]] = []

    class Answer:
        retry_after_s = None

        def __init__(self, status: int, body: bytes) -> None:
            self.status, self.body = status, body

    def request(method: str, path: str, body: bytes, headers: Any) -> Any:
        calls.append((method, path.rpartition("/")[2].partition("?")[0]))
        if path.endswith("/files"):
            states = [{"sha256": sha256, "offset": 0, "complete": False} for sha256 in digests]
            return Answer(200, json.dumps({"files": states}).encode())
        if path.endswith("/small-files"):
            return Answer(404, b"")
        return Answer(200, b'{"offset": 100, "complete": true}')

    items = [{"sha256": sha256, "bytes": 100} for sha256 in digests]
    note = type("N", (), {"seq": 3, "value": {"items": items}})()
    assert uploads.FileUploads(media.folder, RUN, [request]).upload([note], None) == {}
    assert calls == [("POST", "files"), ("POST", "small-files"), *(("PUT", sha256) for sha256 in digests)]


def test_files_are_sent_at_the_same_time_and_the_reason_why_one_was_not_is_raised(tmp_path: Path) -> None:
    files = RunFiles(str(tmp_path))
    items = [files.add(noise(70_000, number)) for number in range(4)]
    full: set[str] = set()
    both = threading.Barrier(2, timeout=PATIENCE_S)

    class Answer:
        retry_after_s = None

        def __init__(self, status: int, value: Any) -> None:
            self.status, self.body = status, json.dumps(value).encode()

        def text(self) -> str:
            return self.body.decode()

    def request(method: str, path: str, body: bytes, headers: Any) -> Any:
        if method == "POST":
            asked = [file["sha256"] for file in json.loads(body)["files"]]
            return Answer(200, {"files": [{"sha256": sha256, "offset": 0} for sha256 in asked]})
        both.wait()  # nobody answers one alone
        if hashlib.sha256(b"".join(body)).hexdigest() in full:
            return Answer(507, {"error": "no space"})
        return Answer(200, {"offset": len(body), "complete": True})

    note = type("N", (), {"seq": 3, "value": {"items": items}})()
    made = uploads.FileUploads(str(tmp_path), RUN, [request, request])
    assert made.upload([note], None) == {}
    assert made.progress == (4, 280_000, 4, 280_000)
    full.update(item["sha256"] for item in items)
    with pytest.raises(TooEarly, match="507 no space"):
        uploads.FileUploads(str(tmp_path), RUN, [request, request]).upload([note], None)


@pytest.mark.parametrize(
    ("request_s", "most_bytes", "pieces"),
    [(0.01, 1 << 30, [1, 2, 4, 8, 5]), (0.01, PIECE_BYTES, [1, 2, *[1] * 19]), (0.6, 1 << 30, [1] * 20)],
    ids=["fast", "an earlier server", "slow"],
)
def test_pieces_grow_as_far_as_the_server_takes_them_in_time(
    tmp_path: Path, request_s: float, most_bytes: int, pieces: list[int]
) -> None:
    files = RunFiles(str(tmp_path))
    item = files.add(noise(20 * PIECE_BYTES))
    now = [0.0]
    tried: list[int] = []
    arrived = bytearray()

    class Answer:
        retry_after_s = None

        def __init__(self, status: int, value: Any) -> None:
            self.status, self.body = status, json.dumps(value).encode()

    def request(method: str, path: str, body: Any, headers: Any) -> Any:
        if method == "POST":
            return Answer(200, {"files": [{"sha256": item["sha256"], "offset": len(arrived)}]})
        now[0] += request_s
        tried.append(len(body) // PIECE_BYTES)
        if len(body) > most_bytes:
            return Answer(413, "<html>too large</html>")
        arrived.extend(b"".join(body))
        return Answer(200, {"offset": len(arrived), "complete": len(arrived) == item["bytes"]})

    note = type("N", (), {"seq": 3, "value": {"items": [item]}})()
    made = uploads.FileUploads(str(tmp_path), RUN, [request], lambda: now[0])
    while True:
        try:
            assert made.upload([note], None) == {}
            break
        except Unfinished:
            continue
    assert hashlib.sha256(arrived).hexdigest() == item["sha256"]
    assert tried == pieces
