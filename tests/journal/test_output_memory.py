"""The memory that a process writes its output to and its monitor reads."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.journal.output_memory import RING_BYTES, OutputMemory, piece
from runvitals.sdk.printed_output import PrintedOutput

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only Linux has such memory")


@contextlib.contextmanager
def recording() -> Iterator[tuple[PrintedOutput, OutputMemory]]:
    """Record two streams that are no files; the reader."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        output = PrintedOutput()
        reader = OutputMemory(os.open(f"/proc/self/fd/{output.about['fd']}", os.O_RDWR))
        try:
            yield output, reader
        finally:
            output.restore()
            reader.close()
    finally:
        sys.stdout, sys.stderr = before


def joined(pieces: list[tuple[int, bytes]], stream: int) -> str:
    return b"".join(data for of, data in pieces if of == stream).decode()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.text(max_size=300)), max_size=40))
def test_what_is_printed_is_read(prints: list[tuple[int, str]]) -> None:
    with recording() as (_, reader):
        for stream, text in prints:
            (sys.stdout if stream == 1 else sys.stderr).write(text)
        pieces = reader.read()
        for stream in (1, 2):
            expected = "".join(text for of, text in prints if of == stream).replace("\0", "?")
            assert joined(pieces, stream) == expected
        assert reader.read() == []
        assert reader.dropped == 0


def test_it_wraps_around() -> None:
    line = "x" * 1000 + "\n"
    with recording() as (_, reader):
        for _ in range(3):
            for _ in range(RING_BYTES // 2000):
                sys.stdout.write(line)
            assert joined(reader.read(), 1) == line * (RING_BYTES // 2000)


def test_of_too_much_the_end_is_kept_in_whole_pieces() -> None:
    with recording() as (_, reader):
        for number in range(40_000):
            print("line", number)
        text = joined(reader.read(), 1)
    assert text.endswith("line 39999\n")
    assert reader.dropped > 0
    numbers = [int(line.removeprefix("line ")) for line in text.splitlines()[1:]]
    assert numbers == list(range(numbers[0], 40_000))


def test_a_second_reader_continues() -> None:
    with recording() as (output, reader):
        print("one")
        assert joined(reader.read(), 1) == "one\n"
        print("two")
        second = OutputMemory(os.open(f"/proc/self/fd/{output.about['fd']}", os.O_RDWR))
        assert joined(second.read(), 1) == "two\n"
        second.close()


def test_a_forked_child() -> None:
    with recording() as (output, reader):
        print("parent")
        child = os.fork()
        if child == 0:
            output.after_fork()
            print("child", file=sys.stderr)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent again")
        pieces = reader.read()
    assert joined(pieces, 1) == "parent\nparent again\n"
    assert joined(pieces, 2) == "child\n"


def test_streams_keep_what_they_return_and_are_restored() -> None:
    with recording() as (output, reader):
        stream = sys.stdout
        assert stream.write("four") == 4
        with pytest.raises(TypeError):
            stream.write(b"bytes")  # type: ignore[arg-type]
        output.restore()
        assert "write" not in vars(stream)
        print("not recorded")
        assert joined(reader.read(), 1) == "four"
        assert isinstance(stream, io.StringIO)
        assert stream.getvalue() == "fournot recorded\n"


def test_a_long_text_is_cut_at_its_beginning() -> None:
    data = piece(1, "a" + "b" * 10**6)
    assert len(data) < RING_BYTES
    assert data.endswith(b"b")
