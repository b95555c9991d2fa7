"""Reads CSV files as spreadsheets and trackers write them: encodings, separators, headers."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import IO, Any, Final

from runvitals.readers.importers.csv_files.cells import number

_SEPARATORS: Final = (",", ";", "\t", "|")
_TRIED_LINES: Final = 100
_BLOCK: Final = 1 << 20
_MAX_COLUMNS: Final = 50_000
_BLOCK_ROWS: Final = 4096
_BLOCK_CELLS: Final = 1 << 16
_BLOCK_CHARACTERS: Final = 1 << 24
"""What is in memory at a time, at most."""
_BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_GZIP: Final = b"\x1f\x8b"
_MAX_LINE: Final = 1 << 24
"""Characters of a line."""
_UNPACKED: Final = (1 << 30, 200)
"""What a compressed file may become: so many bytes, or so many times its size if that is more."""
_HINT: Final = "sep="
"""How the first line of a file for Excel begins, if it names the separator."""


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file, with how it is written.

    Args:
        encoding: of its text; `cp1252`, which older programs write, if it is not UTF-8.
        separator: of its cells.
        skipped: lines before the header: empty ones, comments, and `sep=;`.
        header: the names of its columns, all different.
    """

    path: str
    encoding: str
    separator: str
    skipped: int
    header: tuple[str, ...]

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows with cells, many at a time.

        Raises:
            ValueError: a line that is no CSV, or a row that is longer than the header.
        """
        most_rows = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // len(self.header)))
        with _opened(self.path, self.encoding) as file:
            lines = _Lines(file, self.path)
            reader = csv.reader(islice(lines, self.skipped, None), delimiter=self.separator)
            block, began = RowBlock(self), lines.characters
            try:
                for cells in islice(reader, 1, None):
                    if any(cells):
                        block.rows.append(cells)
                        block.lines.append(self.skipped + reader.line_num)
                    if len(block.rows) == most_rows or lines.characters - began > _BLOCK_CHARACTERS:
                        yield block.checked()
                        block, began = RowBlock(self), lines.characters
            except csv.Error as error:
                line = self.skipped + reader.line_num + 1
                raise ValueError(f"{self.path}, line {line}: {error}") from None
            yield block.checked()


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows that follow each other, and the numbers of their lines."""

    table: Table
    rows: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def columns(self) -> list[Sequence[str]]:
        """Return the cells of each column of the header; "" where a row is too short."""
        count = len(self.table.header)
        columns: list[Sequence[str]] = list(islice(zip_longest(*self.rows, fillvalue=""), count))
        return columns + [("",) * len(self.rows)] * (count - len(columns))

    def checked(self) -> RowBlock:
        """Return the block itself, or raise ValueError if a row is longer than the header."""
        table, most = self.table, len(self.table.header)
        if max(map(len, self.rows), default=0) > most:
            for line, cells in zip(self.lines, self.rows, strict=True):
                if any(cell.strip() for cell in cells[most:]):
                    raise ValueError(
                        f"{table.path}, line {line}: {len(cells)} cells, but the header has {most}; cells "
                        f"that contain the separator {table.separator!r}, such as 0,5, must be quoted"
                    )
        return self


def open_table(path: str) -> Table:
    """Find out how a CSV file is written.

    Raises:
        OSError: it cannot be read.
        ValueError: it has no header, a line is too long, or it unpacks to far more than its size.
    """
    encoding = _encoding(path)
    with _opened(path, encoding) as file:
        lines = list(islice(_Lines(file, path), _TRIED_LINES))
    skipped, hint = _before_header(lines)
    lines = lines[skipped:]
    separator = hint or max(_SEPARATORS, key=lambda each: _agreement(lines, each))
    try:
        header = next(csv.reader(lines, delimiter=separator), [])
    except csv.Error as error:
        raise ValueError(f"{path}, line {skipped + 1}: {error}") from None
    if not any(cell.strip() for cell in header):
        raise ValueError(f"{path}: the first line must have the names of the columns, and it is empty")
    if all(number(cell, ".") is not None or number(cell, ",") is not None for cell in header):
        raise ValueError(
            f"{path}, line {skipped + 1}: the first line must have the names of the columns, and it has "
            "numbers"
        )
    if len(header) > _MAX_COLUMNS:
        raise ValueError(f"{path}: {len(header):,} columns; at most {_MAX_COLUMNS:,} are allowed")
    return Table(path, encoding, separator, skipped, _distinct(header))


@contextmanager
def _opened(path: str, encoding: str) -> Iterator[IO[str]]:
    with _content(path) as content, io.TextIOWrapper(content, encoding, "replace", newline="") as file:
        yield file


@contextmanager
def _content(path: str) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if gzip has packed it.

    Raises:
        ValueError: the packed content is cut or damaged.
    """
    with open(path, "rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        try:
            with gzip.open(file) as content:
                yield io.BufferedReader(_Bounded(content, path))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: the packed content is damaged: {error}") from None


class _Bounded(io.RawIOBase):
    """A packed content that ends with an error if it becomes far more than the file's size."""

    def __init__(self, content: gzip.GzipFile, path: str) -> None:
        self._content, self._path = content, path
        self._bytes_left = max(_UNPACKED[0], _UNPACKED[1] * os.stat(path).st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._content.read(len(buffer))
        self._bytes_left -= len(block)
        if self._bytes_left < 0:
            raise ValueError(f"{self._path}: it unpacks to more than {_UNPACKED[1]} times its size")
        buffer[: len(block)] = block
        return len(block)


class _Lines:
    """The lines of a file.

    Attributes:
        characters: how many were read so far.

    Raises:
        ValueError: one is too long.
    """

    def __init__(self, file: IO[str], path: str) -> None:
        self._file, self._path = file, path
        self.characters = 0

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator[Sequence[str]]:
        """Yield the lines that are complete after each block; splitting them one by one takes longer."""
        rest = ""
        while block := self._file.read(_BLOCK):
            self.characters += len(block)
            lines = io.StringIO(rest + block, newline="").readlines()
            rest = lines.pop()  # even one with an end: that may be the first half of "\r\n"
            if max(map(len, lines), default=0) > _MAX_LINE or len(rest) > _MAX_LINE:
                raise ValueError(f"{self._path}: a line has more than {_MAX_LINE:,} characters")
            yield lines
        yield (rest,) if rest else ()


def _before_header(lines: list[str]) -> tuple[int, str]:
    """Return how many lines are before the header, and the separator that one of them names, or ""."""
    for skipped, line in enumerate(lines):
        hint = line.strip().strip('"')
        if hint.lower().startswith(_HINT) and len(hint) == len(_HINT) + 1:
            return skipped + 1, hint[-1]
        if hint and not hint.startswith("#"):
            return skipped, ""
    return 0, ""


def _encoding(path: str) -> str:
    """Return the encoding of a file."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _content(path) as file:
        block = file.read(_BLOCK)
        for mark, encoding in _BYTE_ORDER_MARKS.items():
            if block.startswith(mark):
                return encoding
        if b"\0" in block[:2]:  # the first letter of a name is one of ASCII's nearly always
            return "utf-16-be" if block[:1] == b"\0" else "utf-16-le"
        try:
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _agreement(lines: list[str], separator: str) -> tuple[float, int]:
    """Return how many lines have as many cells as the header, and how many those are."""
    try:
        counts = [len(cells) for cells in csv.reader(lines, delimiter=separator) if cells]
    except csv.Error:
        return 0.0, 0
    if not counts or counts[0] < 2:
        return 0.0, 0
    return sum(count == counts[0] for count in counts) / len(counts), counts[0]


def _distinct(header: list[str]) -> tuple[str, ...]:
    """Return different names: the second `loss` is `loss 2`, and the fourth without a name `column 4`."""
    names: list[str] = []
    counts: Counter[str] = Counter()
    for position, cell in enumerate(header, 1):
        name = cell.strip() or f"column {position}"
        counts[name] += 1
        while counts[name] > 1 and (numbered := f"{name} {counts[name]}") in counts:
            counts[name] += 1
        if counts[name] > 1:
            counts[numbered] += 1
            name = numbered
        names.append(name)
    return tuple(names)
