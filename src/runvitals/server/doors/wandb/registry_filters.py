"""The filters of registries, their collections and versions, which are written like those of MongoDB.

{"$or": [{"tag": "prod"}, {"alias": "best"}, {"created_at": {"$gte": "2026-01-31"}}]}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

from runvitals.base.regular_expressions import finder
from runvitals.model import json_values
from runvitals.model.mongo_fields import BadFilter
from runvitals.model.mongo_filter import MAX_CONDITIONS, MAX_DEPTH, MAX_LENGTH, time_ms

Row = Mapping[str, Any]
"""The values of the fields of one object. A list stands for several values."""
Holds = Callable[[Row], bool]
SNAKE_CASE: Final[Mapping[str, str]] = {
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "tags": "tag",
    "aliases": "alias",
    "versionIndex": "version",
    "artifact_id": "id",
    "artifact_metadata": "metadata",
    "artifact_created_at": "created_at",
    "acm_created_at": "linked_at",
}
"""Other names of fields and orders."""
Convert = Callable[[Any], Any]
"""Makes an operand comparable with the values of a field; raises ValueError."""
_ORDERED: Final = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS: Final = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $contains, $regex, $not"


def text(operand: Any) -> str:
    """Return an operand that is compared with a text."""
    if not isinstance(operand, str):
        raise ValueError("expected a text")
    return operand


def number(operand: Any) -> int:
    """Return an operand that is compared with a number."""
    if type(operand) is not int:
        raise ValueError("expected an integer")
    return operand


def version(operand: Any) -> int:
    """Return an operand that is compared with the number of a version: 3 or `v3`."""
    if isinstance(operand, str) and operand[:1] == "v" and operand[1:19].isdecimal():
        return int(operand[1:19])
    return number(operand)


def scalar(operand: Any) -> Any:
    """Return an operand that is compared with values of any type."""
    if isinstance(operand, (dict, list)):
        raise ValueError("expected a number, text or bool")
    return operand


def time(operand: Any) -> float:
    """Return an operand that is compared with a time in ms UTC."""
    return time_ms(operand)


def compile_filter(filter_text: str | None, fields: Mapping[str, Convert]) -> Holds:
    """Return the condition of a filter on a row.

    Args:
        fields: that there are, with what makes operands comparable. Where the value of one is a mapping, its
            own fields are named `metadata.acc`.

    Raises:
        BadFilter: it is not a filter, is too large, or names a field or operator that is not supported.

    Example:
        >>> compile_filter('{"name": {"$regex": "^a"}}', {"name": text})({"name": "abc"})
        True
    """
    if not filter_text:
        return lambda row: True
    if len(filter_text) > MAX_LENGTH:
        raise BadFilter(f"the filter has {len(filter_text):,} characters; expected at most {MAX_LENGTH:,}")
    try:
        filter_value = json_values.decode(filter_text)
    except ValueError as error:
        raise BadFilter(f"the filter is not JSON: {error}") from None
    return _Compiler(fields).all_of(filter_value or {}, 0)


class _Compiler:
    """Compiles one filter, and counts its conditions."""

    def __init__(self, fields: Mapping[str, Convert]) -> None:
        self._fields = fields
        self._conditions = 0

    def all_of(self, condition: Any, depth: int) -> Holds:
        """Return all conditions of an object of the filter."""
        if depth > MAX_DEPTH:
            raise BadFilter(f"the filter is nested too deeply; expected at most {MAX_DEPTH} levels")
        if not isinstance(condition, dict):
            raise BadFilter("invalid condition; expected an object such as {'name': 'mnist'}")
        return _all([self._one(name, value, depth) for name, value in condition.items()])

    def _one(self, name: str, value: Any, depth: int) -> Holds:
        if name == "$not":
            return _negate(self.all_of(value, depth + 1))
        if name in ("$and", "$or", "$nor"):
            if not isinstance(value, list):
                raise BadFilter(f"invalid {name}: expected a list of conditions")
            parts = [self.all_of(item, depth + 1) for item in value]
            if name == "$and":
                return _all(parts)
            return _any(parts) if name == "$or" else _negate(_any(parts))
        return self._field(name, value, depth)

    def _field(self, name: str, value: Any, depth: int) -> Holds:
        root, _, rest = name.partition(".")
        root = SNAKE_CASE.get(root, root)
        convert = self._fields.get(root)
        if convert is None:
            allowed = ", ".join(sorted(self._fields))
            raise BadFilter(
                f"unknown field {name[:60]!r}; expected one of {allowed}, or $and, $or, $nor, $not"
            )
        if depth > MAX_DEPTH:
            raise BadFilter(f"the filter is nested too deeply; expected at most {MAX_DEPTH} levels")
        if not isinstance(value, dict):
            value = {"$eq": value}
        parts = []
        for operator, operand in value.items():
            self._conditions += len(operand) if isinstance(operand, list) else 1
            if self._conditions > MAX_CONDITIONS:
                raise BadFilter(f"the filter has too many conditions; expected at most {MAX_CONDITIONS}")
            if operator == "$not":
                parts.append(_negate(self._field(name, operand, depth + 1)))
                continue
            try:
                parts.append(_condition(root, rest, operator, operand, convert))
            except ValueError as error:
                raise BadFilter(f"{name[:60]}: {error}") from None
        return _all(parts)


def _condition(root: str, rest: str, operator: str, operand: Any, convert: Convert) -> Holds:
    """Return the condition that an operator and its operand make.

    Raises:
        ValueError: an unknown operator, or an operand that it cannot have.
    """
    if operator in ("$ne", "$nin"):
        return _negate(_condition(root, rest, "$eq" if operator == "$ne" else "$in", operand, convert))
    if operator == "$exists":
        return lambda row: bool(_values(row, root, rest)) == bool(operand)
    if operator == "$eq" and operand is None:
        return lambda row: not _values(row, root, rest)
    if operator == "$in":
        if not isinstance(operand, list):
            raise ValueError("expected a list after $in")
        return _any([_condition(root, rest, "$eq", item, convert) for item in operand])
    matches = _matcher(operator, operand, convert)
    return lambda row: any(map(matches, _values(row, root, rest)))


def _matcher(operator: str, operand: Any, convert: Convert) -> Callable[[Any], bool]:
    if operator == "$regex":
        matches_text = finder(text(operand))
        return lambda value: isinstance(value, str) and matches_text(value)
    if operator == "$contains":
        part = text(operand)
        return lambda value: isinstance(value, str) and part in value
    expected = convert(operand)
    if operator == "$eq":
        return lambda value: (
            (type(value) is type(expected) and value == expected) or _same_number(value, expected)
        )
    if operator in _ORDERED:
        compare = _ORDERED[operator]
        return lambda value: _comparable(value, expected) and bool(compare(value, expected))
    raise ValueError(f"unknown operator {operator[:60]!r}; expected one of {_OPERATORS}")


def _values(row: Row, root: str, rest: str) -> list[Any]:
    """Return the values of a field, without null."""
    value: Any = row.get(root)
    for part in rest.split(".") if rest else ():
        value = value.get(part) if isinstance(value, Mapping) else None
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [item for item in listed if item is not None]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same_number(value: Any, expected: Any) -> bool:
    return _is_number(value) and _is_number(expected) and bool(value == expected)


def _comparable(value: Any, expected: Any) -> bool:
    return (_is_number(value) and _is_number(expected)) or (
        isinstance(value, str) and isinstance(expected, str)
    )


def _all(parts: list[Holds]) -> Holds:
    return lambda row: all(part(row) for part in parts)


def _any(parts: list[Holds]) -> Holds:
    return lambda row: any(part(row) for part in parts)


def _negate(part: Holds) -> Holds:
    return lambda row: not part(row)
