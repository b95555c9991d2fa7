"""Frames: every intact frame is read, damage is skipped and reported, and nothing else is returned."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal import frames
from runvitals.journal.frames import Damage, Frame, frame, scan, scan_file
from tests.processor_time import measured

_payloads = st.lists(
    st.one_of(
        st.binary(max_size=60), st.just(frames.MAGIC), st.builds(frame, st.just(3), st.just(0), st.binary())
    )
)


def journal_of(payloads: list[bytes]) -> bytes:
    return b"".join(frame(frames.EVENT, seq, payload) for seq, payload in enumerate(payloads))


def whole(data: bytes) -> list[bytes]:
    return [f.payload for f in scan(data) if isinstance(f, Frame)]


def damaged(data: bytes) -> list[tuple[int, int]]:
    return [(d.start, d.end) for d in scan(data) if isinstance(d, Damage) and not d.torn]


def torn(data: bytes) -> list[tuple[int, int]]:
    return [(d.start, d.end) for d in scan(data) if isinstance(d, Damage) and d.torn]


@given(st.integers(0, 255), st.integers(0, 2**64 - 1), st.binary(max_size=2000))
def test_a_frame_is_read_as_it_was_written(type: int, seq: int, payload: bytes) -> None:
    [scanned] = scan(frame(type, seq, payload))
    assert isinstance(scanned, Frame)
    assert (scanned.type, scanned.seq, scanned.payload, scanned.offset, scanned.end) == (
        type, seq, payload, 0, 24 + len(payload),
    )  # fmt: skip


@given(_payloads)
def test_frames_follow_each_other(payloads: list[bytes]) -> None:
    assert whole(journal_of(payloads)) == payloads
    assert [type(part) for part in scan(journal_of(payloads))] == [Frame] * len(payloads)


def test_a_file_truncated_at_any_byte_has_the_records_before_it() -> None:
    payloads = [b"", b"loss", frames.MAGIC, frame(frames.EVENT, 1, b"inner"), b"{}" * 20]
    data = journal_of(payloads)
    ends = [f.end for f in scan(data) if isinstance(f, Frame)]
    for cut in range(len(data)):
        complete = [end for end in ends if end <= cut]
        assert whole(data[:cut]) == payloads[: len(complete)]
        assert damaged(data[:cut]) == []
        assert torn(data[:cut]) == (
            [] if cut == max(complete, default=0) else [(max(complete, default=0), cut)]
        )


def test_one_changed_byte_damages_one_record() -> None:
    payloads = [b"first", frame(frames.EVENT, 7, b"never written as a record"), b"third"]
    data = journal_of(payloads)
    ends = [0, *(f.end for f in scan(data) if isinstance(f, Frame))]
    for at in range(ends[2]):
        broken = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
        victim = 0 if at < ends[1] else 1
        if ends[1] <= at < ends[1] + 24:
            continue  # after a damaged header the payload is searched: see the next test
        assert whole(broken) == payloads[:victim] + payloads[victim + 1 :]
        assert damaged(broken) == [(ends[victim], ends[victim + 1])]


def test_after_a_damaged_header_the_next_magic_is_searched() -> None:
    data = journal_of([b"first", frames.MAGIC * 3 + b"second", b"third"])
    _, second, third = [f.offset for f in scan(data) if isinstance(f, Frame)]
    for at in range(second, second + 24):
        broken = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert whole(broken) == [b"first", b"third"]
        assert damaged(broken) == [(second, third)]


@given(_payloads.filter(bool), st.data())
def test_overwritten_bytes_damage_only_the_records_they_overlap(
    payloads: list[bytes], data: st.DataObject
) -> None:
    written = journal_of(payloads) + frame(frames.EVENT, 999, b"the last one is whole")
    start = data.draw(st.integers(0, len(written) - 46))
    noise = data.draw(st.binary(min_size=1, max_size=min(200, len(written) - 45 - start)))
    broken = written[:start] + noise + written[start + len(noise) :]
    kept = {f.offset: f.payload for f in scan(broken) if isinstance(f, Frame)}
    for original in scan(written):
        assert isinstance(original, Frame)
        if original.end <= start or original.offset >= start + len(noise):
            assert kept.get(original.offset) == original.payload
    covered = sum(24 + len(payload) for payload in kept.values()) + sum(b - a for a, b in damaged(broken))
    assert covered == len(written)
    assert torn(broken) == []


def test_frames_within_an_incomplete_payload_are_not_read() -> None:
    inner = frame(frames.EVENT, 1, b"printed by the program")
    growing = frame(frames.CONSOLE, 0, inner * 3)
    for cut in range(1, len(growing)):
        assert whole(growing[:cut]) == []
        assert torn(growing[:cut]) == [(0, cut)]


def test_zeros_at_the_end_after_a_crash() -> None:
    data = journal_of([b"a", b"b"])
    assert whole(data + bytes(100)) == [b"a", b"b"]
    assert torn(data + bytes(100)) == [(len(data), len(data) + 100)]
    assert damaged(data + bytes(100) + frame(frames.EVENT, 2, b"c")) == [(len(data), len(data) + 100)]


def test_a_last_frame_with_missing_pages_is_torn() -> None:
    data = journal_of([b"a", b"x" * 50])
    start = len(data) - 74
    assert torn(data[:-20] + bytes(20)) == [(start, len(data))]


def test_a_payload_over_16_mib_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"record of 16777217 bytes is too large; at most 16777216"):
        frame(frames.EVENT, 0, bytes(frames.MAX_PAYLOAD + 1))


def test_a_header_that_claims_4_gib_is_damage() -> None:
    signed = struct.pack("<BIQ", frames.EVENT, 2**32 - 1, 0)
    header = frames.HEADER.pack(frames.MAGIC, 0, crc32(signed) & 0xFFFFFF | frames.EVENT << 24, 2**32 - 1, 0)
    data = header + journal_of([b"next"])
    assert damaged(data) == [(0, 24)]
    assert whole(data) == [b"next"]


def test_crafted_bytes_are_read_in_linear_time() -> None:
    # Single magics, headers (sound or not) that all claim the next 100,000 bytes, and valid frames between
    # damaged ones. A reader that tries every possible frame takes 10 s for 2 MB, this one 0.3 s.
    claim = 100_000
    signed = struct.pack("<BIQ", frames.EVENT, claim, 0)
    sound = frames.HEADER.pack(frames.MAGIC, 0, crc32(signed) & 0xFFFFFF | frames.EVENT << 24, claim, 0)
    unsound = frames.HEADER.pack(frames.MAGIC, 0, 0, claim, 0)
    for piece in (frames.MAGIC, sound, unsound, frame(1, 0, b"") + unsound, frame(1, 0, b"") + bytes(30)):
        data = piece * (2_000_000 // len(piece))
        with measured() as cost:
            assert sum(d.end - d.start for d in scan(data) if isinstance(d, Damage)) > 0
        assert cost.times < 75


def of_file(path: Path, start: int = 0) -> list[tuple[object, ...]]:
    fd = os.open(path, os.O_RDONLY)
    try:
        return [as_tuple(part) for part in scan_file(fd, start)]
    finally:
        os.close(fd)


def as_tuple(part: Frame | Damage) -> tuple[object, ...]:
    if isinstance(part, Frame):
        return part.type, part.seq, part.payload, part.offset, part.end
    return part.start, part.end, part.torn


def test_a_file_read_in_pieces_has_the_same_frames(tmp_path: Path) -> None:
    piece = 256 * 1024  # the reader's window
    path = tmp_path / "journal"
    small = journal_of([bytes([i]) * 1000 for i in range(200)])
    large = frame(frames.INFO, 200, b"x" * (3 * piece))
    edge = frame(frames.INFO, 201, b"y" * (2 * piece - 24))
    noise = frames.MAGIC + os.urandom(piece) + frames.MAGIC[:3]
    for data in (
        small + large + small,
        large + large[:-1],
        edge + edge + small,
        small + noise + small + noise,
        noise + large[:-5] + small,
        bytes(3 * piece) + small,
        small[: piece - 7] + bytes(2 * piece) + small,
        small * 2 + large[:-1] + b"!" + small,
        b"",
    ):
        path.write_bytes(data)
        assert of_file(path) == [as_tuple(part) for part in scan(data)]
        assert of_file(path, 1000) == [as_tuple(part) for part in scan(data, 1000)]


def test_a_hole_longer_than_any_frame_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with path.open("wb") as file:
        file.write(frame(frames.EVENT, 0, b"before"))
        file.truncate(40_000_000)
        file.seek(40_000_000)
        file.write(frame(frames.EVENT, 1, b"behind"))
    assert [row[2] for row in of_file(path)] == [b"before", False, b"behind"]
