"""Filters of `Api.runs` in the language of MongoDB, evaluated over runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

Look = Callable[[str], Any]
"""The value of a field of a run, or `ABSENT`."""
ABSENT: Any = object()
_ORDERED = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def holds(condition: Mapping[str, Any], look: Look) -> bool:
    """Whether a run fulfils a filter.

    Args:
        condition: fields with the value they must have, or with operators; `$and`, `$or`, `$nor`, `$not`.
        look: finds the value of a field.

    Raises:
        ValueError: an unknown operator, or an operand that it cannot have.

    Example:
        >>> holds({"state": "finished", "config.lr": {"$gt": 0.1}}, {"state": "finished", "config.lr": 1}.get)
        True
    """
    return all(_field_holds(name, wanted, look) for name, wanted in condition.items())


def _field_holds(name: str, wanted: Any, look: Look) -> bool:
    if name in ("$and", "$or", "$nor"):
        if not isinstance(wanted, list):
            raise ValueError(f"{name} expects a list of filters")
        found = [holds(each, look) for each in wanted]
        return all(found) if name == "$and" else any(found) == (name == "$or")
    if name == "$not":
        return not holds(wanted, look)
    if name.startswith("$"):
        raise ValueError(f"unknown operator {name}")
    value = look(name)
    if isinstance(wanted, Mapping) and any(str(key).startswith("$") for key in wanted):
        return all(_compares(value, operator, operand) for operator, operand in wanted.items())
    return _equal(value, wanted)


def _compares(value: Any, operator: str, operand: Any) -> bool:
    if operator in _ORDERED:
        try:
            return value is not ABSENT and value is not None and bool(_ORDERED[operator](value, operand))
        except TypeError:
            return False  # of other types: never ordered
    if operator in ("$eq", "$ne"):
        return _equal(value, operand) == (operator == "$eq")
    if operator in ("$in", "$nin"):
        return any(_equal(value, each) for each in operand) == (operator == "$in")
    if operator == "$exists":
        return (value is not ABSENT) == bool(operand)
    if operator == "$regex":
        return isinstance(value, str) and re.search(operand, value) is not None
    if operator == "$not":
        return not all(_compares(value, *each) for each in operand.items())
    raise ValueError(f"unknown operator {operator}")


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, list) and not isinstance(wanted, list):
        return wanted in value
    return bool((None if value is ABSENT else value) == wanted)
