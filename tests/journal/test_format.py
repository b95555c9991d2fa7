"""`docs/concepts/journal.md` is correct: a reader written from it agrees with ours, also on damaged files."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal import frames
from runvitals.journal.reader import Tail, read_run
from runvitals.journal.sealing import SegmentSealer
from runvitals.journal.writer import JournalWriter
from tests.journal.minireader import FileContents

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "journal.md"
ABOUT = {"run": "abc", "role": "monitor", "interval_s": 1}


def the_example() -> bytes:
    [dump] = re.findall(r"```hex\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return bytes.fromhex("".join(line[4:] for line in dump.splitlines()))


def test_the_example_has_the_records_described() -> None:
    reading = FileContents(the_example())
    start, schema, (sample_type, sample_seq, (time_ms, values)) = reading.records()
    head = {"format": 1, "writer": "monitor.n1.18c", "segment": 0, "t": 1700000000000, **ABOUT}
    assert start == (1, 0, head)
    assert schema == (2, 1, {"id": 0, "keys": ["cpu", "memory_percent"]})
    assert (sample_type, sample_seq, time_ms) == (3, 2, 1700000000000)
    assert values["cpu"] == 12.5
    assert math.isnan(values["memory_percent"])
    assert (reading.damage, reading.torn_from) == ([], None)


def test_the_headers_of_the_example_match_its_table() -> None:
    data = the_example()
    rows = re.findall(
        r"\| (\w+) \| magic; crc `(\w+)`; check `(\w+)`; type (\d), (\w+); length .*?(\d+); seq (\d)",
        PAGE.read_text(),
    )
    assert len(rows) == 3
    for at, crc, check, type, name, length, seq in rows:
        header = data[int(at, 16) : int(at, 16) + 24]
        fields = (header[7:3:-1].hex(), header[10:7:-1].hex(), header[11], header[12], header[16])
        assert fields == (crc, check, int(type), int(length), int(seq))
        assert getattr(frames, name) == int(type)


def test_our_frames_match_the_example_byte_by_byte() -> None:
    again = b"".join(
        frames.frame(type, seq, payload) for type, seq, payload in FileContents(the_example()).frames
    )
    assert again == the_example()


def test_a_reader_written_from_the_page_reads_raw_and_sealed_files(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "monitor.n1.18c", ABOUT, segment_bytes=6000)
    numbers = random.Random(1)
    for i in range(300):
        assert journal.sample(i, {f"gpu.{k}.powerWatts": numbers.gauss(300, 20) for k in range(8 + i % 3)})
    assert journal.json(frames.EVENT, {"t": 7, "name": "marker", "level": "info", "text": "über"})
    assert journal.record(frames.CONSOLE, b"\x01" + bytes(8) + b"loss 0.5\n")
    journal.close()
    raw = contents(tmp_path)
    assert raw == [(r.type, r.seq, content(r)) for r in read_run(str(tmp_path))]
    assert len(journal.rotated) >= 3
    for path in [*journal.rotated, journal.path]:
        sealer = SegmentSealer(path)
        while sealer.step():
            pass
    assert contents(tmp_path) == raw


def test_the_media_record_of_the_page_is_read(tmp_path: Path) -> None:
    examples = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [example] = [text for text in examples if '"sha256"' in text]
    journal = JournalWriter(str(tmp_path), "media.n1.7.18c", {**ABOUT, "role": "media"})
    assert journal.record(frames.MEDIA, example.encode())
    assert journal.record(frames.MEDIA, example.replace("e3b0", "../x").encode())
    assert journal.record(11, b"of a later version")
    assert journal.json(frames.EVENT, {"t": 7, "name": "marker", "level": "info", "text": "on"})
    journal.close()
    tail = Tail(str(tmp_path))
    start, media, event = tail.poll()
    assert (start.type, event.type, tail.damaged) == (frames.START, frames.EVENT, 1)
    assert media.value == json.loads(example)
    assert contents(tmp_path)[1] == (frames.MEDIA, 1, example.encode())  # of a reader that does not know it


def contents(folder: Path) -> list[tuple[int, int, Any]]:
    """All records of a folder with one writer, as read by the page's reader."""
    return [
        record
        for path in sorted(folder.glob("*.rvj"))
        for record in FileContents(path.read_bytes()).records()
    ]


def content(record: Any) -> Any:
    if record.type == frames.SAMPLE:
        return record.time_ms, dict(zip(record.keys, record.values, strict=True))
    return record.value


# Anything that a file can contain: frames, damaged and truncated ones, single magics, zeros, noise.
_frame = st.builds(frames.frame, st.integers(1, 8), st.integers(0, 9), st.binary(max_size=40))
_pieces = st.lists(
    st.one_of(
        _frame,
        st.tuples(_frame, st.integers(0, 63), st.integers(1, 255)).map(
            lambda t: bytes(b ^ t[2] if i == t[1] % len(t[0]) else b for i, b in enumerate(t[0]))
        ),
        st.tuples(_frame, st.integers(0, 63)).map(lambda t: t[0][: t[1]]),
        st.integers(1, 60).map(bytes),
        st.sampled_from([frames.MAGIC, frames.MAGIC[:2]]),
        st.binary(max_size=40),
    ),
    max_size=8,
)


@given(_pieces)
def test_both_readers_agree_on_any_bytes(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    page = FileContents(data)
    ours = list(frames.scan(data))
    assert [(f.type, f.seq, f.payload) for f in ours if isinstance(f, frames.Frame)] == page.frames
    damage = [d for d in ours if isinstance(d, frames.Damage)]
    assert [(d.start, d.end) for d in damage if not d.torn] == page.damage
    assert [d.start for d in damage if d.torn] == ([] if page.torn_from is None else [page.torn_from])
