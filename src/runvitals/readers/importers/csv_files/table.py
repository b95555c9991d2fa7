"""Reads CSV files as spreadsheets and trackers write them: encodings, separators, headers."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

_SEPARATORS: Final = (",", ";", "\t", "|")
_TRIED_LINES: Final = 100
_BLOCK: Final = 1 << 20
_MAX_COLUMNS: Final = 50_000
_BYTE_ORDER_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_HINT: Final = "sep="
"""How the first line of a file for Excel begins, if it names the separator."""


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file, with how it is written.

    Args:
        encoding: of its text; `cp1252`, which older programs write, if it is not UTF-8.
        separator: of its cells.
        skipped: lines before the header.
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
        with open(self.path, encoding=self.encoding, errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=self.separator)
            try:
                for cells in islice(reader, self.skipped + 1, None):
                    if any(cells):
                        yield reader.line_num, cells
            except csv.Error as error:
                raise ValueError(f"{self.path}, line {reader.line_num + 1}: {error}") from None


def open_table(path: str) -> Table:
    """Find out how a CSV file is written.

    Raises:
        OSError: it cannot be read.
        ValueError: it has no header.
    """
    encoding = _encoding(path)
    with open(path, encoding=encoding, errors="replace", newline="") as file:
        lines = list(islice(file, _TRIED_LINES))
    hint = lines[0].strip().strip('"') if lines else ""
    has_hint = hint.lower().startswith(_HINT) and len(hint) == len(_HINT) + 1
    lines = lines[has_hint:]
    separator = hint[-1] if has_hint else max(_SEPARATORS, key=lambda each: _agreement(lines, each))
    try:
        header = next(csv.reader(lines, delimiter=separator), [])
    except csv.Error as error:
        raise ValueError(f"{path}, line 1: {error}") from None
    if not any(cell.strip() for cell in header):
        raise ValueError(f"{path}: the first line must have the names of the columns, and it is empty")
    if len(header) > _MAX_COLUMNS:
        raise ValueError(f"{path}: {len(header):,} columns; at most {_MAX_COLUMNS:,} are allowed")
    return Table(path, encoding, separator, int(has_hint), _distinct(header))


def _encoding(path: str) -> str:
    """Return the encoding of a file."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as file:
        block = file.read(_BLOCK)
        for mark, encoding in _BYTE_ORDER_MARKS.items():
            if block.startswith(mark):
                return encoding
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
    seen: Counter[str] = Counter()
    for place, cell in enumerate(header, 1):
        name = cell.strip() or f"column {place}"
        seen[name] += 1
        while seen[name] > 1 and (numbered := f"{name} {seen[name]}") in seen:
            seen[name] += 1
        if seen[name] > 1:
            seen[numbered] += 1
            name = numbered
        names.append(name)
    return tuple(names)
