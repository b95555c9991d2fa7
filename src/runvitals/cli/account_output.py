"""Output of commands about accounts: tables and sentences for users, JSON for scripts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from runvitals.cli.formatting import inert, moment, table

Columns = Mapping[str, Callable[[Any], object]]
"""The title of each column, and its value for a row; None is shown as a dash."""
_MAX_NAMED = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """Rows of one kind.

    Attributes:
        rows: dataclasses, dictionaries or namespaces: what JSON has.
        empty: what is printed instead of a table without rows.
    """

    rows: Sequence[Any]
    columns: Columns
    empty: str


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a command: a text for users, and a record for JSON."""

    text: str
    record: object = None


def printed(result: Listing | Outcome, as_json: bool) -> str:
    """The output of a command. Names cannot contain control sequences for the terminal."""
    if as_json:
        record = list(result.rows) if isinstance(result, Listing) else result.record
        return json.dumps(_plain(record), indent=1)
    if isinstance(result, Outcome):
        return "\n".join(map(inert, result.text.split("\n")))
    if not result.rows:
        return inert(result.empty)
    lines = [[_cell(value(row)) for value in result.columns.values()] for row in result.rows]
    return table([list(result.columns), *lines])


def when(time_ms: int | None) -> str | None:
    """A time in UTC, to the minute."""
    return None if time_ms is None else moment(time_ms)[:16]


def day(time_ms: int | None) -> str | None:
    """A day in UTC."""
    return None if time_ms is None else moment(time_ms)[:10]


def expected(names: Iterable[str], command: str) -> str:
    """The end of an error about an unknown name: the names that there are, or the command that lists them."""
    sorted_names = sorted(names)
    if not sorted_names:
        return "there is none yet"
    if len(sorted_names) > _MAX_NAMED:
        return f"`{command}` lists those that there are"
    return f"expected one of {', '.join(sorted_names)}"


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (frozenset, set)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(inert(str(item)) for item in value) or "-"
    return inert(str(value))


def _plain(record: object) -> Any:
    """A record as JSON has it."""
    if isinstance(record, (list, tuple)):
        return [_plain(item) for item in record]
    if isinstance(record, (frozenset, set)):
        return sorted(record)
    if isinstance(record, SimpleNamespace):
        return _plain(vars(record))
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: _plain(getattr(record, field.name)) for field in dataclasses.fields(record)}
    if isinstance(record, dict):
        return {name: _plain(value) for name, value in record.items()}
    return record
