"""Reads CSV files as spreadsheets and trackers write them: encodings, separators, headers."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, Final

from runvitals.readers.importers.csv_files.cells import number

_SEPARATORS: Final = (",", ";", "\t", "|")
_TRIED_LINES: Final = 100
_BLOCK: Final = 1 << 20
_MAX_COLUMNS: Final = 50_000
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

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row with cells, and the number of its line.

        Raises:
            ValueError: a line that is no CSV.
        """
        with _opened(self.path, self.encoding) as file:
            lines = islice(_lines(file, self.path), self.skipped, None)
            reader = csv.reader(lines, delimiter=self.separator)
            try:
                for cells in islice(reader, 1, None):
                    if any(cells):
                        yield self.skipped + reader.line_num, cells
            except csv.Error as error:
                line = self.skipped + reader.line_num + 1
                raise ValueError(f"{self.path}, line {line}: {error}") from None


def open_table(path: str) -> Table:
    """Find out how a CSV file is written.

    Raises:
        OSError: it cannot be read.
        ValueError: it has no header, a line is too long, or it unpacks to far more than its size.
    """
    encoding = _encoding(path)
    with _opened(path, encoding) as file:
        lines = list(islice(_lines(file, path), _TRIED_LINES))
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


def _lines(file: IO[str], path: str) -> Iterator[str]:
    """Yield the lines of a file.

    Raises:
        ValueError: one is too long.
    """
    while line := file.readline(_MAX_LINE):
        if len(line) == _MAX_LINE and line[-1] not in "\r\n":
            raise ValueError(f"{path}: a line has more than {_MAX_LINE:,} characters")
        yield line


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
