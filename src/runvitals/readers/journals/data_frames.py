"""Rows and series as tables of pandas and polars, where these are installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from runvitals.readers.journals.history import leaves

if TYPE_CHECKING:
    from runvitals.readers.journals.logged_rows import LoggedRow
    from runvitals.readers.journals.series import Series

Table = Mapping[str, Sequence[Any]]
"""Values by the name of a column; None where there is none."""


def table_of_rows(rows: Sequence[LoggedRow]) -> Table:
    """Return a column for `step`, `time`, `rank`, `host` and each logged name, with dots for nested ones."""
    about: dict[str, Sequence[Any]] = {
        "step": [row.step for row in rows],
        "time": [moment(row.time_ms) for row in rows],
        "rank": [row.rank for row in rows],
        "host": [row.host for row in rows],
    }
    logged: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        for name, value in leaves(row.data):
            logged.setdefault(name, [None] * len(rows))[number] = value
    return about | {(f"logged.{name}" if name in about else name): column for name, column in logged.items()}


def table_of_series(series: Iterable[Series]) -> Table:
    """Return a column for `time`, `host` and each key; with `role`, if the series have several.

    A row has what one host has sampled at a time.
    """
    every = list(series)
    rows = sorted({(int(t), each.host, each.role) for each in every for t in each.t})
    numbers = {row: number for number, row in enumerate(rows)}
    columns: dict[str, list[Any]] = {
        "time": [moment(time_ms) for time_ms, _, _ in rows],
        "host": [host for _, host, _ in rows],
    }
    if len({each.role for each in every}) > 1:
        columns["role"] = [role for _, _, role in rows]
    for each in every:
        column = columns.setdefault(each.key, [None] * len(rows))
        for time_ms, value in zip(each.t, each.values, strict=True):
            column[numbers[int(time_ms), each.host, each.role]] = float(value)
    return columns


def moment(time_ms: int) -> datetime | None:
    """Return a time in UTC; None if it is out of the calendar's range."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def to_pandas(table: Table) -> Any:
    """Return a `pandas.DataFrame`, or raise ModuleNotFoundError."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this needs pandas: pip install pandas", name=error.name) from error
    return pandas.DataFrame(dict(table))


def to_polars(table: Table) -> Any:
    """Return a `polars.DataFrame`, or raise ModuleNotFoundError."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("this needs polars: pip install polars", name=error.name) from error
    return polars.DataFrame(dict(table), strict=False)
