"""Pages of runs sorted by several columns and fields.

To sort 100,000 runs by all keys takes 0.2 to 0.5 s. Instead, the page is first read in the order of the first
key alone, which has an index in most cases. Runs of the page whose value no run outside it has are sorted by
all keys: they are few. Runs outside may share the first and the last value of the page: of the runs with
such a value, a part is read in the order of the next key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, exists, func, literal, select, true

from runvitals.model.fields import NUMBER, TEXT
from runvitals.model.filter import Filter, is_field
from runvitals.model.names import plain_text
from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor, invalid_cursor
from runvitals.server.database.database import among, ids_of
from runvitals.server.database.tables.runs import field, run, run_field
from runvitals.server.database.text import check_integers
from runvitals.server.runs.storage.filter_conditions import Condition, in_states
from runvitals.server.runs.storage.run_columns import TEXTS, sorted_columns
from runvitals.server.runs.storage.run_order import MISSING, MatchingRuns, SortKey, without_field
from runvitals.server.runs.storage.run_rows import RunPage, read_rows

_BEYOND = 2**62
"""More than any id, and less than the largest integer of a database."""


class _Key(NamedTuple):
    """A column of the order."""

    by: ColumnElement[Any]
    descending: bool


class _Value(NamedTuple):
    """A value of runs in a column or field: `kind` is 0 in a column. Without one, `value` is None."""

    kind: int
    value: float | str | None


def sorted_page(
    connection: Connection,
    run_filter: Filter,
    sort: RunSort,
    limit: int,
    after: str | None,
    now_ms: int,
    skip: int,
) -> RunPage:
    """Implements `RunTable.page` for an order of several parts."""
    as_of_ms, end = now_ms, None
    if after is not None:
        as_of_ms, *end = _read_cursor(after, sort)
    order = _Order(connection, sort.parts, as_of_ms)
    runs = MatchingRuns(connection, run_filter, as_of_ms)
    if end is None:
        ids = order.ids(runs, 0, limit + 1, skip)
    else:
        *keys, last_id = end
        ids = order.ids_after(runs, 0, limit + 1 + skip, _values(sort.parts, keys), last_id)[skip:]
    following = None
    if len(ids) > limit:
        following = encode_cursor(sort, (as_of_ms, *order.keys_of(ids[limit - 1])))
    return RunPage(read_rows(connection, ids[:limit], now_ms), following)


class _Order:
    """An order of several parts.

    Args:
        parts: the last of them also says in which direction the ids go that come after all of them.
    """

    def __init__(self, connection: Connection, parts: Sequence[RunSort], now_ms: int) -> None:
        self._connection = connection
        self._parts = [replace(part, then=()) for part in parts]
        self._columns = sorted_columns(now_ms)
        self._now_ms = now_ms
        self._numbers = ids_of(
            connection, field.c.name, [plain_text(part.by) for part in parts if is_field(part.by)]
        )
        self._keys, self._source = self._all_keys()

    def ids(
        self, runs: MatchingRuns, part: int, limit: int, skip: int = 0, after: SortKey | None = None
    ) -> list[int]:
        """Return the runs in the order of the parts from this one on.

        Args:
            after: begin after this position in the order of this part alone; only without `skip`.
        """
        if limit <= 0:
            return []
        if part == len(self._parts):
            return self._by_id(runs, limit, skip, None)
        sort = self._parts[part]
        window = runs.positions(sort, limit + 1, after, skip)
        if part == len(self._parts) - 1 and all(position.kind != MISSING for position in window):
            return [position.id for position in window[:limit]]
        shared = [(value, [member.id for member in members]) for value, members in groupby(window, _value)]
        ids: list[int] = []
        if skip and shared:  # runs before this page may have the first value too
            value, members = shared.pop(0)
            within = skip - runs.before(sort, *value)
            ids += self.ids(self._with(runs, part, value), part + 1, min(limit, len(members)), within)
        last = shared.pop() if shared and len(window) > limit else None  # and runs after it the last one
        ids += self._sort_ids([run_id for _, members in shared for run_id in members])
        if last is not None:
            ids += self.ids(self._with(runs, part, last[0]), part + 1, limit - len(ids))
        return ids

    def ids_after(
        self, runs: MatchingRuns, part: int, limit: int, values: Sequence[_Value], last_id: int
    ) -> list[int]:
        """Return those that come after a run with these values of the parts from this one on."""
        if part == len(self._parts):
            return self._by_id(runs, limit, 0, last_id)
        value, *later_values = values
        ids = self.ids_after(self._with(runs, part, value), part + 1, limit, later_values, last_id)
        if value.value is not None:
            beyond = SortKey(value.kind, value.value, -1 if self._parts[part].descending else _BEYOND)
            ids += self.ids(runs, part, limit - len(ids), after=beyond)
        return ids

    def keys_of(self, run_id: int) -> list[Any]:
        """Return the values of all keys of a run, and its id."""
        columns = [key.by.label(f"key_{index}") for index, key in enumerate(self._keys)]
        statement = select(*columns, run.c.id).select_from(self._source).where(run.c.id == run_id)
        return list(self._connection.execute(statement).one())

    def _by_id(self, runs: MatchingRuns, limit: int, skip: int, last_id: int | None) -> list[int]:
        descending = self._parts[-1].descending
        statement = select(run.c.id).where(*runs.plan(None).where)
        if last_id is not None:
            statement = statement.where(run.c.id < last_id if descending else run.c.id > last_id)
        statement = statement.order_by(run.c.id.desc() if descending else run.c.id)
        return list(self._connection.execute(statement.limit(limit).offset(skip)).scalars())

    def _sort_ids(self, ids: Sequence[int]) -> list[int]:
        """Return some runs in the order of all keys."""
        if len(ids) < 2:
            return list(ids)
        directions = [key.by.desc() if key.descending else key.by for key in self._keys]
        statement = (
            select(run.c.id)
            .select_from(self._source)
            .where(among(self._connection, run.c.id, ids))
            .order_by(*directions, run.c.id.desc() if self._parts[-1].descending else run.c.id)
        )
        return list(self._connection.execute(statement).scalars())

    def _with(self, runs: MatchingRuns, part: int, value: _Value) -> MatchingRuns:
        """Return those of the runs that have this value."""
        return replace(runs, also=(*runs.also, self._has(self._parts[part].by, value)))

    def _has(self, name: str, value: _Value) -> Condition:
        if name == "state":
            return in_states([str(value.value)], self._now_ms)
        if not is_field(name):
            return Condition(self._columns[name] == literal(value.value))
        number = self._numbers.get(plain_text(name))
        if value.value is None:
            return Condition(true() if number is None else without_field(number))
        matches = select(run_field.c.run_id).where(
            run_field.c.field_id == number,
            run_field.c.kind == value.kind,
            run_field.c.number == (value.value if value.kind == NUMBER else 0.0),
        )
        if value.kind == TEXT:
            matches = matches.where(run_field.c.text == value.value)
        return Condition(exists(matches.where(run_field.c.run_id == run.c.id).correlate(run)), matches)

    def _all_keys(self) -> tuple[list[_Key], Any]:
        """Return the keys of all parts, three of a field, and the runs joined with the fields."""
        source: Any = run
        keys: list[_Key] = []
        for index, part in enumerate(self._parts):
            if not is_field(part.by):
                keys.append(_Key(self._columns[part.by], part.descending))
                continue
            values = run_field.alias(f"sorted_{index}")
            # A field that no run has: no id is 0.
            number = self._numbers.get(plain_text(part.by), 0)
            source = source.outerjoin(values, and_(values.c.run_id == run.c.id, values.c.field_id == number))
            keys += [
                _Key(func.coalesce(values.c.kind, MISSING), False),
                _Key(func.coalesce(values.c.number, 0.0), part.descending),
                _Key(func.coalesce(values.c.text, ""), part.descending),
            ]
        return keys, source


def _value(position: SortKey) -> _Value:
    return _Value(position.kind, None if position.kind == MISSING else position.value)


def _values(parts: Sequence[RunSort], keys: Sequence[Any]) -> list[_Value]:
    """Return the values of the parts, from those of their keys."""
    values: list[_Value] = []
    keys_left = iter(keys)
    for part in parts:
        if is_field(part.by):
            kind, number, text = next(keys_left), next(keys_left), next(keys_left)
            values.append(_Value(kind, {NUMBER: number, TEXT: text}.get(kind)))
        else:
            values.append(_Value(0, next(keys_left)))
    return values


def _read_cursor(after: str, sort: RunSort) -> list[Any]:
    """Return the time of the first page, the values of the keys of the last run, and its id."""
    types: list[bool] = []
    kinds: list[int] = []
    for part in sort.parts:
        if is_field(part.by):
            kinds.append(len(types))
        types += [False, False, True] if is_field(part.by) else [part.by in TEXTS]
    values = decode_cursor(sort, after, len(types) + 2)
    try:
        check_integers("after", as_of_ms=values[0], run_id=values[-1])
    except ValueError:
        raise invalid_cursor(after) from None
    if values[0] is None or values[-1] is None:
        raise invalid_cursor(after)
    keys = values[1:-1]
    if not all(is_key_value(value, is_text) for value, is_text in zip(keys, types, strict=True)):
        raise invalid_cursor(after)
    if any(keys[position] not in (NUMBER, TEXT, MISSING) for position in kinds):
        raise invalid_cursor(after)
    return values


def is_key_value(value: object, is_text: bool) -> bool:
    """Return whether a value of a cursor can be one of a text or number column."""
    if isinstance(value, str):
        return is_text and plain_text(value) == value
    if isinstance(value, bool) or is_text:
        return False
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
