"""The reader yields each record once and reports what it could not read."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal import frames, paths
from runvitals.journal.frames import frame
from runvitals.journal.reader import MAX_PROBLEMS, Tail, WriterTail, read_run
from runvitals.journal.records import Record
from runvitals.journal.sealing import BLOCK, SegmentSealer
from runvitals.journal.writer import JournalWriter

NAME = "monitor.n1.1.00000.rvj"


class Folder:
    """A run's folder whose files the test writes itself."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.tail = Tail(str(path))

    def append(self, data: bytes, name: str = NAME) -> None:
        with (self.path / name).open("ab") as file:
            file.write(data)

    def poll(self) -> list[Record]:
        return list(self.tail.poll())

    @property
    def problems(self) -> list[str]:
        return [str(problem).removeprefix(f"{self.path}/") for problem in self.tail.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def event(seq: int, payload: bytes = b'{"t":1}') -> bytes:
    return frame(frames.EVENT, seq, payload)


def schema(seq: int, schema_id: int, keys: list[str]) -> bytes:
    return frame(
        frames.SCHEMA, seq, b'{"id":%d,"keys":%s}' % (schema_id, str(keys).replace("'", '"').encode())
    )


def sample(seq: int, schema_id: int, *values: float) -> bytes:
    return frame(frames.SAMPLE, seq, struct.pack(f"<IIq{len(values)}d", schema_id, 0, seq, *values))


def seqs(records: Iterable[Record]) -> list[int]:
    return [record.seq for record in records]


# -- following


@given(st.data())
def test_a_growing_file_gives_each_record_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = Folder(tmp_path_factory.mktemp("run"))
    written = b"".join(event(seq, b'{"t":%d}' % seq) for seq in range(12)) + event(
        12, b'{"text":"%s"}' % frames.MAGIC.hex().encode()
    )
    sequence: list[int] = []
    while written:
        count = data.draw(st.integers(1, 80))
        folder.append(written[:count])
        written = written[count:]
        sequence += seqs(folder.poll())
    assert sequence == list(range(13))
    assert folder.problems == []
    assert folder.tail.writers["monitor.n1.1"].torn_bytes == 0


def test_an_incomplete_record_is_yielded_once_it_is_complete(folder: Folder) -> None:
    folder.append(event(0) + event(1)[:30])
    assert seqs(folder.poll()) == [0]
    assert folder.tail.writers["monitor.n1.1"].torn_bytes == 30
    assert folder.problems == []
    folder.append(event(1)[30:])
    assert seqs(folder.poll()) == [1]
    assert folder.tail.writers["monitor.n1.1"].torn_bytes == 0


def test_an_incomplete_record_is_reported_when_the_writer_has_begun_another_file(folder: Folder) -> None:
    folder.append(event(0) + event(1)[:30])
    folder.poll()
    folder.append(event(1), "monitor.n1.1.00001.rvj")
    assert seqs(folder.poll()) == [1]
    assert folder.problems == [f"{NAME}: its last 30 bytes are an incomplete record"]


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="this kernel does not count what is read")
@pytest.mark.parametrize("before", [event(0), event(0) + b"no frame"], ids=["frame", "damage"])
@pytest.mark.parametrize("behind", [b"", event(1)], ids=["nothing", "frame"])
def test_the_holes_of_a_sparse_file_are_not_read(folder: Folder, before: bytes, behind: bytes) -> None:
    path = folder.path / NAME
    path.write_bytes(before)
    os.truncate(path, 8 << 30)
    folder.append(behind)
    read_before = bytes_read()
    assert seqs(folder.poll()) == ([0, 1] if behind else [0])
    [problem] = folder.problems
    assert problem.startswith(f"{NAME}: bytes {len(event(0))} to 8589")
    assert problem.endswith("are damaged and were skipped")
    assert bytes_read() - read_before < 64 << 20
    folder.append(event(2))
    assert seqs(folder.poll()) == [2], "the writer of a live file continues after them"


def bytes_read() -> int:
    """Bytes that this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


# What can happen during reading: the writer writes or seals, one reader reads all, another a few records.
_acts = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 30)),
        st.tuples(st.just("seal"), st.integers(1, 3)),
        st.tuples(st.just("poll"), st.just(0)),
        st.tuples(st.just("take"), st.integers(1, 20)),
    ),
    max_size=30,
)


@given(_acts)
def test_rotation_and_sealing_while_readers_follow(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("run")
    journal = JournalWriter(str(path), "monitor.n1.1", {}, segment_bytes=2000)
    eager, slow = Tail(str(path)), Tail(str(path))
    by_eager: list[int] = []
    by_slow: list[int] = []
    sealer: SegmentSealer | None = None
    for act, count in acts:
        if act == "write":
            for i in range(count):
                journal.sample(journal.seq, {"cpu": 1.0, f"gpu.{i % 3}.temp": 2.0})
        elif act == "poll":
            by_eager += seqs(eager.poll())
        elif act == "take":
            by_slow += seqs(islice(slow.poll(), count))
        elif sealer or journal.rotated:
            sealer = sealer or SegmentSealer(journal.rotated.pop(0))
            if not sealer.step():
                sealer = None
    if sealer:
        sealer.abandon()
    journal.close()
    everything = list(range(journal.seq))
    assert by_eager + seqs(eager.poll()) == everything
    assert by_slow + seqs(slow.poll()) == everything
    assert seqs(read_run(str(path))) == everything
    assert [*eager.problems, *slow.problems] == []


def test_a_reader_may_stop_at_any_record(folder: Folder) -> None:
    inner = b"".join(event(seq) for seq in range(1, 9))
    folder.append(event(0) + frame(BLOCK, 1, zlib.compress(inner)) + event(9))
    assert [seqs(islice(folder.tail.poll(), 3)) for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_samples_have_the_keys_of_their_schema(folder: Folder) -> None:
    folder.append(schema(0, 0, ["cpu"]) + sample(1, 0, 0.5))
    folder.append(schema(2, 1, ["cpu", "memory_percent"]) + sample(3, 1, 1.0, 2.0) + sample(4, 0, 3.0))
    records = [record for record in folder.poll() if record.type == frames.SAMPLE]
    assert [(list(r.keys), r.values) for r in records] == [
        (["cpu"], (0.5,)), (["cpu", "memory_percent"], (1.0, 2.0)), (["cpu"], (3.0,)),
    ]  # fmt: skip
    assert [struct.unpack(f"<{len(r.keys)}d", r.packed) for r in records] == [r.values for r in records]


def test_an_unknown_record_type_is_skipped(folder: Folder) -> None:
    folder.append(event(0) + frame(200, 1, b"?") + event(2))
    assert seqs(folder.poll()) == [0, 2]
    assert folder.problems == []


# -- deleted files


def test_files_deleted_during_reading(folder: Folder) -> None:
    folder.append(event(0) + event(1))
    assert seqs(folder.poll()) == [0, 1]
    folder.append(event(2), "monitor.n1.1.00001.rvj")
    folder.append(event(3), "monitor.n1.1.00002.rvj")
    (folder.path / NAME).unlink()
    (folder.path / "monitor.n1.1.00001.rvj").unlink()
    assert seqs(folder.poll()) == [3]
    assert folder.tail.writers["monitor.n1.1"].missing == 1
    (folder.path / "monitor.n1.1.00002.rvj").unlink()
    assert folder.poll() == []
    folder.append(event(4), "monitor.n1.1.00003.rvj")
    assert seqs(folder.poll()) == [4]


def test_a_run_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(read_run(str(tmp_path / "nowhere")))


# -- damaged files


def test_damage_is_reported_with_its_offsets_and_the_rest_is_read(folder: Folder) -> None:
    folder.append(event(0) + b"noise" + event(2)[:-1] + b"!" + event(3))
    size = len(event(0))
    assert seqs(folder.poll()) == [0, 3]
    assert folder.problems == [f"{NAME}: bytes {size} to {2 * size + 5} are damaged and were skipped"]
    assert folder.tail.writers["monitor.n1.1"].missing == 2
    folder.append(event(4))
    assert seqs(folder.poll()) == [4]
    assert len(folder.problems) == 1


def test_a_damaged_block_loses_only_its_own_records(folder: Folder) -> None:
    blocks = [frame(BLOCK, 10 * i, zlib.compress(event(10 * i) + event(10 * i + 1))) for i in range(3)]
    folder.append(blocks[0] + blocks[1][:-3] + b"\0" + blocks[1][-2:] + blocks[2])
    assert seqs(folder.poll()) == [0, 1, 20, 21]
    assert len(folder.problems) == 1


def test_samples_without_a_schema_are_reported_and_later_ones_are_read(folder: Folder) -> None:
    folder.append(
        schema(0, 0, ["cpu"])[:-1] + b"!" + sample(1, 0, 1.0) + schema(2, 0, ["cpu"]) + sample(3, 0, 2.0)
    )
    assert [r.values for r in folder.poll() if r.type == frames.SAMPLE] == [(2.0,)]
    assert folder.problems[1] == (
        f"{NAME}: record 1 of type 3 is damaged: sample uses schema 0, which was not declared before it"
    )


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\xff\xfe", "can't decode byte"),
        (b"", "invalid JSON"),
        (b"{", "property name"),
        (b"[1]", "invalid record: expected an object, not a list"),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"a":' * 1_000_000, "nested too deeply"),
        (b'{"t":"noon"}', "invalid t: expected a time in ms UTC, 1970 to 9998, not 'noon'"),
        (b'{"t":1e400}', "invalid t: expected a time in ms UTC, 1970 to 9998, not inf"),
        (b'{"t":NaN}', "1970 to 9998, not nan"),
        (b'{"t":99999999999999999999}', "not an integer of 67 bits"),
        (b'{"t":%s}' % (b"9" * 10_000), "digits"),
    ],
)
def test_invalid_json_records(payload: bytes, reason: str, folder: Folder) -> None:
    folder.append(event(0, payload) + event(1))
    assert seqs(folder.poll()) == [1]
    [problem] = folder.problems
    assert problem.startswith(f"{NAME}: record 0 of type 6 is damaged: ")
    assert reason in problem


@pytest.mark.parametrize(
    "payload",
    [b'{"id":0}', b'{"id":[],"keys":["a"]}', b'{"id":0,"keys":7}', b'{"id":0,"keys":[[]]}', b"7", b"\xff"],
)
def test_invalid_schemas(payload: bytes, folder: Folder) -> None:
    folder.append(frame(frames.SCHEMA, 0, payload) + sample(1, 0, 1.0) + event(2))
    assert seqs(folder.poll())[-1] == 2
    assert "record 0 of type 2 is damaged" in folder.problems[0]


@pytest.mark.parametrize("payload", [b"", b"\x01" * 8])
def test_console_output_without_a_time(payload: bytes, folder: Folder) -> None:
    folder.append(frame(frames.CONSOLE, 0, payload) + event(1))
    assert seqs(folder.poll()) == [1]
    assert "expected at least 9" in folder.problems[0]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"rubbish", "invalid block: Error -3"),
        (zlib.compress(event(5))[:-2], "invalid block: truncated"),
        (zlib.compress(b"rubbish"), "its last record is incomplete"),
        (zlib.compress(bytes(100_000_000)), "larger than 17825792 bytes"),
    ],
)
def test_invalid_blocks(payload: bytes, reason: str, folder: Folder) -> None:
    folder.append(event(0) + frame(BLOCK, 1, payload) + event(2))
    tracemalloc.start()
    assert seqs(folder.poll()) == [0, 2]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reason in folder.problems[0]
    assert peak < 40_000_000


def test_a_block_in_a_block_is_not_decompressed(folder: Folder) -> None:
    bomb = frame(BLOCK, 0, zlib.compress(event(0)))
    for _ in range(3):
        bomb = frame(BLOCK, 0, zlib.compress(bomb))
    folder.append(bomb + event(1))
    assert seqs(folder.poll()) == [1]


def test_memory_use_does_not_grow_with_the_file(folder: Folder) -> None:
    keys = [f"cpu.{i}.cpu_percent" for i in range(50)]
    folder.append(schema(0, 0, keys))
    folder.append(b"".join(sample(seq, 0, *([0.5] * 50)) for seq in range(1, 12_000)))
    tracemalloc.start()
    assert sum(1 for _ in folder.tail.poll()) == 12_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert os.path.getsize(folder.path / NAME) > 5_000_000
    assert peak < 2_000_000


def test_the_oldest_of_too_many_schemas_are_dropped(folder: Folder) -> None:
    keys = [f"k{i}" for i in range(100_000)]
    for i in range(12):
        folder.append(schema(i, i, keys))
    folder.append(sample(12, 11, *([1.0] * 100_000)) + sample(13, 0, *([1.0] * 100_000)))
    assert [r.seq for r in folder.poll() if r.type == frames.SAMPLE] == [12]
    assert "sample uses schema 0, which was not declared" in folder.problems[0]


def test_the_number_of_problems_is_limited(folder: Folder) -> None:
    folder.append(b"".join(event(seq) + b"noise" for seq in range(1000)) + event(1000))
    assert len(folder.poll()) == 1001
    assert len(folder.problems) == MAX_PROBLEMS
    assert folder.problems[-1] == f"{NAME}: further problems are not listed"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_paths_that_are_not_regular_files(folder: Folder) -> None:
    os.mkfifo(folder.path / "fifo.00000.rvj")
    (folder.path / "folder.00000.rvj").mkdir()
    (folder.path / "loop.00000.rvj").symlink_to("loop.00000.rvj")
    (folder.path / "nowhere.00000.rvj").symlink_to("nowhere")
    folder.append(event(0))
    for _ in range(3):
        folder.poll()
    assert seqs(read_run(str(folder.path))) == [0]
    assert folder.problems == [
        "fifo.00000.rvj: could not be read: not a regular file",
        "folder.00000.rvj: could not be read: not a regular file",
        "loop.00000.rvj: could not be read: Too many levels of symbolic links",
    ]


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    folder = Folder(tmp_path_factory.mktemp("run"))
    for type in range(12):
        folder.append(frame(type, type, noise))
    folder.append(event(12) + noise + event(13))
    assert seqs(folder.poll())[-2:] == [12, 13]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_reader_that_starts_at_a_record_skips_earlier_files(tmp_path: Path, sealed: bool) -> None:
    journal = JournalWriter(str(tmp_path), "monitor.n1.1", {}, segment_bytes=2_000)
    for t in range(200):
        journal.sample(t, {"cpu": float(t)})
    journal.close()
    for path in journal.rotated if sealed else ():
        sealer = SegmentSealer(path)
        while sealer.step():
            pass
    everything = list(read_run(str(tmp_path)))
    segments = paths.segments(str(tmp_path))["monitor.n1.1"]
    for record in everything:
        tail = WriterTail(str(tmp_path), "monitor.n1.1", record.seq)
        rest = list(tail.poll(segments))
        assert [(r.seq, r.keys, r.packed) for r in rest] == [
            (r.seq, r.keys, r.packed) for r in everything[record.seq :]
        ]
        assert (tail.problems, tail.missing) == ([], 0)
    for path in journal.rotated[:-1]:
        os.unlink(path)
    left = list(WriterTail(str(tmp_path), "monitor.n1.1", everything[-1].seq).poll(segments))
    assert [r.seq for r in left] == [everything[-1].seq]
