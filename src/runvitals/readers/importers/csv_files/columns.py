"""What the columns of a CSV file are: step, time, numbers or texts. Reads the whole file once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from runvitals.readers.importers.csv_files.cells import DecimalMark, decimal_mark, is_empty, number, time_ms
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
    marks: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    numbers: dict[DecimalMark, int] = field(default_factory=lambda: {".": 0, ",": 0})

    def add(self, line: int, cell: str) -> None:
        self.first = self.first or cell.strip()
        self.filled += 1
        mark = decimal_mark(cell)
        if mark is not None and mark not in self.marks:
            self.marks[mark], self.examples[mark] = line, cell.strip()
        for each in self.numbers:
            self.numbers[each] += number(cell, each) is not None
        if self.may_be_times:
            self.times += time_ms(cell) is not None


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
    for line, cells in table.rows():
        _check_length(table, line, cells)
        for content, cell in zip(contents, cells, strict=False):
            if not is_empty(cell):
                content.add(line, cell)
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
    first_ms = None if time is None else _earliest(table, time)
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


def _check_length(table: Table, line: int, cells: Sequence[str]) -> None:
    if len(cells) > len(table.header) and any(cell.strip() for cell in cells[len(table.header) :]):
        raise ValueError(
            f"{table.path}, line {line}: {len(cells)} cells, but the header has {len(table.header)}; cells "
            f"that contain the separator {table.separator!r}, such as 0,5, must be quoted"
        )


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


def _earliest(table: Table, time: int) -> float | None:
    times = (time_ms(cells[time]) for _, cells in table.rows() if time < len(cells))
    return min((moment[0] for moment in times if moment is not None), default=None)
