"""Sealing keeps the same records in less space, and loses none when it is interrupted."""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.reader import Tail, read_run
from runvitals.journal.sealing import MAX_BLOCK, SegmentSealer, unpack_block, whole_records
from runvitals.journal.writer import JournalWriter


def write(folder: Path, count: int = 500) -> str:
    """The path of a closed file of samples."""
    journal = JournalWriter(str(folder), "monitor.n1.1", {"run": "abc"})
    numbers = random.Random(1)
    for i in range(count):
        journal.sample(i, {f"cpu.{k}.cpu_percent": float(numbers.randrange(1000)) / 10 for k in range(30)})
    journal.close()
    return journal.path


def seal(path: str) -> None:
    sealer = SegmentSealer(path)
    while sealer.step():
        pass


def contents(folder: Path) -> list[tuple[object, ...]]:
    return [(r.type, r.seq, r.time_ms, r.value, r.packed) for r in read_run(str(folder))]


def test_a_sealed_file_has_the_same_records_in_less_space(tmp_path: Path) -> None:
    path = write(tmp_path)
    before, size = contents(tmp_path), os.path.getsize(path)
    seal(path)
    assert contents(tmp_path) == before
    assert os.path.getsize(path) < size / 2
    assert os.listdir(tmp_path) == [os.path.basename(path)]


def test_a_step_seals_about_64_kib(tmp_path: Path) -> None:
    path = write(tmp_path, 1000)
    sealer = SegmentSealer(path)
    steps = 1
    while sealer.step():
        steps += 1
    data = Path(path).read_bytes()
    blocks = [
        list(unpack_block(part.payload)) for part in frames.scan(data) if isinstance(part, frames.Frame)
    ]
    assert len(blocks) == steps - 1
    assert all(64 * 1024 <= block[-1].end < 66 * 1024 for block in blocks[:-1])


def test_interrupted_sealing_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = Path(path).read_bytes()
    sealer = SegmentSealer(path)
    sealer.step()
    sealer.abandon()
    assert Path(path).read_bytes() == before
    assert os.listdir(tmp_path) == [os.path.basename(path)]


def test_a_leftover_part_file_is_ignored_and_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path)
    before = contents(tmp_path)
    Path(path + ".part").write_bytes(b"rubbish" * 100_000)
    assert contents(tmp_path) == before
    seal(path)
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == [os.path.basename(path)]


@pytest.mark.parametrize("harm", ["cut", "noise"])
def test_a_damaged_file_is_not_sealed(harm: str, tmp_path: Path) -> None:
    path = write(tmp_path, 300)
    data = bytearray(Path(path).read_bytes())
    if harm == "cut":
        del data[-1]
    else:
        data[70_000:70_010] = bytes(10)
    Path(path).write_bytes(data)
    sealer = SegmentSealer(path)
    assert sealer.step()
    with pytest.raises(ValueError, match=r"00000\.rvj was not sealed: bytes \d+ to \d+ are damaged"):
        sealer.step()
    sealer.abandon()
    assert Path(path).read_bytes() == data


def test_a_sealed_file_is_not_sealed_again(tmp_path: Path) -> None:
    path = write(tmp_path)
    seal(path)
    before = contents(tmp_path)
    sealer = SegmentSealer(path)
    with pytest.raises(ValueError, match="already sealed"):
        sealer.step()
    sealer.abandon()
    assert contents(tmp_path) == before


def test_incompressible_records_are_stored_unchanged(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.7", {"run": "abc"})
    longest = b"\x01" + bytes(8) + os.urandom(frames.MAX_PAYLOAD - 9)
    for payload in (longest, b"\x01" + bytes(2_000_000), longest):
        assert journal.record(frames.CONSOLE, payload)
    journal.close()
    before = contents(tmp_path)
    for path in journal.rotated:
        seal(path)
    assert contents(tmp_path) == before
    tail = Tail(str(tmp_path))
    assert sum(1 for _ in tail.poll()) == len(before)
    assert tail.problems == []


def test_whole_records_of_part_of_a_sealed_or_unsealed_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    raw = [(f.type, f.seq, f.payload) for f in whole_records(Path(path).read_bytes())]
    seal(path)
    data = Path(path).read_bytes()
    assert [(f.type, f.seq, f.payload) for f in whole_records(data)] == raw
    assert [f.seq for f in whole_records(data[20:])][-1] == raw[-1][1]


def test_a_block_is_decompressed_to_17_mib_at_most() -> None:
    largest = frames.frame(7, 0, bytes(frames.MAX_PAYLOAD))
    rest = frames.frame(7, 1, bytes(MAX_BLOCK - len(largest) - frames.HEADER_SIZE))
    assert [frame.seq for frame in unpack_block(zlib.compress(largest + rest))] == [0, 1]
    with pytest.raises(ValueError, match="truncated, or larger than 17825792 bytes"):
        list(unpack_block(zlib.compress(largest + rest + b"!")))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"rubbish", "invalid block: Error -3"),
        (b"", "truncated"),
        (zlib.compress(bytes(100_000))[:-1], "truncated"),
        (zlib.compress(bytes(100)), "not a record"),
        (zlib.compress(frames.frame(6, 0, b"{}") + b"more"), "its last record is incomplete"),
        (zlib.compress(frames.frame(6, 0, b"{}")[:-1]), "not a record"),
    ],
)
def test_invalid_blocks(payload: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        list(unpack_block(payload))
