"""What the columns of a CSV file are: step, time, numbers or texts. Reads the whole file once, by columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from runvitals.readers.importers.csv_files.cells import (
    DecimalMark,
    decimal_mark,
    is_empty,
    number,
    numbers,
    times_ms,
)
from runvitals.readers.importers.csv_files.table import Table

_STEPS: Final = ("step", "_step", "global_step", "trainer/global_step", "steps", "iteration", "iter")
_TIMES: Final = (
    "time_ms",
    "timestamp",
    "_timestamp",
    "datetime",
    "date",
    "time",
    "wall_time",
    "wall time",
    "created_at",
    "t",
)
"""Names of columns, in lower case, the likeliest first."""


@dataclass(slots=True)
class _Content:
    """The cells of a column.

    Args:
        may_be_times: whether its name is that of a column of times.
        marks: the first line in which a number has this decimal mark.
        examples: a cell of that line.
    """

    may_be_times: bool
    first: str = ""
    filled: int = 0
    times: int = 0
    first_ms: float | None = None
    marks: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    numbers: dict[DecimalMark, int] = field(default_factory=lambda: {".": 0, ",": 0})

    def add(self, lines: Sequence[int], cells: Sequence[str]) -> None:
        """Add cells, and the lines in which they are."""
        are_numbers = numbers(cells, ".") is not None
        if not are_numbers:
            lines = [line for line, cell in zip(lines, cells, strict=True) if not is_empty(cell)]
            cells = [cell for cell in cells if not is_empty(cell)]
            are_numbers = numbers(cells, ".") is not None
        self.filled += len(cells)
        if cells and not self.first:
            self.first = cells[0].strip()
        if self.may_be_times:
            self._add_times(cells)
        if are_numbers:
            self._add_numbers(lines, cells, ".", ",")
        elif numbers(cells, ",") is not None:
            self._add_numbers(lines, cells, ",", ".")
        else:
            self._add_others(lines, cells)

    def _add_times(self, cells: Sequence[str]) -> None:
        times = [moment[0] for moment in times_ms(cells) if moment is not None]
        self.times += len(times)
        if times:
            first_ms = min(times)
            self.first_ms = first_ms if self.first_ms is None else min(first_ms, self.first_ms)

    def _add_numbers(
        self, lines: Sequence[int], cells: Sequence[str], mark: DecimalMark, other: DecimalMark
    ) -> None:
        """Add numbers that all have this decimal mark, or none."""
        self.numbers[mark] += len(cells)
        if mark not in self.marks and any(mark in cell for cell in cells):
            for line, cell in zip(lines, cells, strict=True):
                if self._add_mark(line, cell) == mark:
                    return
        if mark not in self.marks:
            self.numbers[other] += len(cells)  # they could have that one, too

    def _add_others(self, lines: Sequence[int], cells: Sequence[str]) -> None:
        """Add cells of which some are no numbers, or numbers in unusual forms."""
        first_lines = dict(zip(reversed(cells), reversed(lines), strict=True))
        for cell, count in Counter(cells).items():
            self._add_mark(first_lines[cell], cell)
            for each in self.numbers:
                self.numbers[each] += count * (number(cell, each) is not None)

    def _add_mark(self, line: int, cell: str) -> str | None:
        """Note where each decimal mark is first; return that of this cell."""
        mark = decimal_mark(cell)
        if mark is not None and mark not in self.marks:
            self.marks[mark], self.examples[mark] = line, cell.strip()
        return mark


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which column is what, by their positions.

    Args:
        step, time: None if there is none.
        values: the names of all others that have a number or a text somewhere.
        mark: of the numbers of the file.
        first_ms: the earliest time, UTC; None without times.
        unreadable_times: about a column that should have times; "" if there is none.
    """

    step: int | None
    time: int | None
    values: dict[int, str]
    mark: DecimalMark
    first_ms: float | None
    unreadable_times: str = ""


def columns_of(table: Table) -> TableColumns:
    """Read a file, and say which of its columns is what.

    Raises:
        ValueError: it has no column of numbers, a row is longer than the header, or its numbers can be
            read in two ways.
    """
    contents = [_Content(name.lower() in _TIMES) for name in table.header]
    for block in table.blocks():
        for content, cells in zip(contents, block.columns(), strict=True):
            content.add(block.lines, cells)
    time = _column_named(
        table.header, _TIMES, [each.filled and each.times * 2 > each.filled for each in contents]
    )
    others = [each for index, each in enumerate(contents) if index != time]
    mark = _mark_of(table, others)
    numeric = [each.filled > 0 and each.numbers[mark] == each.filled for each in contents]
    step = _column_named(table.header, _STEPS, numeric)
    values = {
        index: name
        for index, name in enumerate(table.header)
        if index not in (step, time) and contents[index].filled and not _repeats(table.header, name, time)
    }
    if not any(contents[index].numbers[mark] for index in values):
        names = ", ".join(repr(name[:40]) for name in table.header[:10])
        raise ValueError(f"{table.path}: no numeric column besides step and time; the columns are {names}")
    first_ms = None if time is None else contents[time].first_ms
    unreadable = _unreadable_times(table.header, contents) if time is None else ""
    return TableColumns(step, time, values, mark, first_ms, unreadable)


def _unreadable_times(header: Sequence[str], contents: Sequence[_Content]) -> str:
    """Return what to say of the first column of texts whose name is that of times; "" without one."""
    for name, content in zip(header, contents, strict=True):
        if content.may_be_times and content.filled and not any(content.numbers.values()):
            return (
                f"the column {name!r} has other forms of times than ISO 8601, such as {content.first[:40]!r}"
            )
    return ""


def _column_named(header: Sequence[str], names: Sequence[str], suits: Sequence[object]) -> int | None:
    """Return the position of the column with the likeliest of these names whose cells suit."""
    lower = [name.lower() for name in header]
    for name in names:
        if name in lower and suits[lower.index(name)]:
            return lower.index(name)
    return None


def _repeats(header: Sequence[str], name: str, time: int | None) -> bool:
    """Return whether a column has the times of another one, as in our own exports."""
    return name == "time" and time is not None and header[time] == "time_ms"


def _mark_of(table: Table, contents: Sequence[_Content]) -> DecimalMark:
    """Return the decimal mark of a file, which all its numbers share."""
    marks: dict[str, tuple[int, str]] = {}
    for content in contents:
        for mark, line in content.marks.items():
            if mark not in marks or line < marks[mark][0]:
                marks[mark] = line, content.examples[mark]
    if "." in marks and "," in marks:
        (first, dot), (second, comma) = marks["."], marks[","]
        raise ValueError(
            f"{table.path}: line {first} has {dot!r} with a decimal point, line {second} has {comma!r} with "
            "a decimal comma; one file must use one of them"
        )
    if "," in marks:
        return ","
    if "?" in marks and "." not in marks and "," in marks["?"][1]:
        line, cell = marks["?"]
        raise ValueError(
            f"{table.path}, line {line}: {cell!r} can be thousands or decimals, and no other number of the "
            "file tells which; write it without separator, or with a decimal point"
        )
    return "."
