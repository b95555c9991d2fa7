"""Filters, order and groups of run sets: those of W&B's reports as ours."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from runvitals.server.doors.wandb.executor import InvalidArgument

_MAX_DEPTH: Final = 10
_OPERATORS: Final = {"=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LISTS: Final = {"IN": False, "NIN": True}
_LABELS: Final[Mapping[str, str]] = {
    "state": "state",
    "name": "id",
    "displayName": "name",
    "group": "group",
    "jobType": "job_type",
    "host": "host",
    "user": "user",
    "username": "user",
    "sweep": "sweep",
    "notes": "note",
    "tags": "tag",
}
_COMPARED: Final[Mapping[str, str]] = {"createdAt": "started", "heartbeatAt": "last", "duration": "duration"}
_SORT_COLUMNS: Final[Mapping[str, str]] = {
    "createdAt": "started_ms",
    "heartbeatAt": "last_ms",
    "duration": "duration_ms",
    "name": "id",
    "displayName": "name",
    "state": "state",
    "group": "group",
    "jobType": "job_type",
}
_GROUP_FIELDS: Final[Mapping[str, str]] = {
    "group": "group",
    "jobType": "job_type",
    "state": "state",
    "tags": "tag",
    "host": "host",
    "username": "user",
    "user": "user",
}
_PLAIN_NAME: Final = re.compile(r"[\w/-]+(\.[\w/-]+)*")
_PLAIN_TEXT: Final = re.compile(r"[\w./+-]+")


def filter_text(filters: Mapping[str, Any] | None, search: str = "") -> str:
    """Return our filter for a tree of W&B's, in its old form or in `filterV2`.

    Args:
        search: words of the search field, which hold as well.

    Raises:
        InvalidArgument: the filter means something that our filters cannot say.

    Example:
        >>> leaf = {"key": {"section": "config", "name": "lr"}, "op": ">=", "value": 0.1}
        >>> filter_text({"op": "OR", "filters": [{"op": "AND", "filters": [leaf]}]}, "base")
        'base config.lr>=0.1'
    """
    terms = [_quoted(search)] if search.strip() else []
    if filters:
        if filters.get("filterFormat") == "filterV2":
            terms += _flat(filters.get("filters") or [])
        else:
            terms += _tree(filters, 0)
    return " ".join(terms)


def sort_text(keys: Iterable[Mapping[str, Any]]) -> str:
    """Return our order for W&B's sort keys.

    Example:
        >>> sort_text([{"key": {"section": "summary", "name": "loss"}, "ascending": True}])
        'summary.loss'
    """
    columns = []
    for each in keys:
        key = each.get("key") or {}
        section, name = key.get("section"), str(key.get("name") or "")
        if not name:
            continue
        column = _SORT_COLUMNS.get(name) if section == "run" else None
        sign = "" if each.get("ascending") else "-"
        columns.append(sign + (column or _field("config" if section == "config" else "summary", name)))
    return ",".join(columns)


def group_fields(keys: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the fields by which we group for W&B's keys.

    Example:
        >>> group_fields([{"section": "run", "name": "group"}, {"section": "config", "name": "lr.value"}])
        ['group', 'config.lr']
    """
    fields = []
    for key in keys:
        section, name = key.get("section"), str(key.get("name") or "")
        if section == "run" and name in _GROUP_FIELDS:
            fields.append(_GROUP_FIELDS[name])
        elif name:
            fields.append(_field("summary" if section == "summary" else "config", name))
    return fields


def _flat(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The terms of `filterV2`: a list whose members say how they are connected with the one before."""
    present = [item for item in items if not item.get("disabled")]
    if any("filters" in item for item in present):
        terms = []
        for item in present:
            if str(item.get("connector") or "AND").upper() == "OR":
                raise _inexpressible("groups connected by OR")
            terms += _flat(item["filters"]) if "filters" in item else [_leaf(item)]
        return terms
    alternatives: list[list[Mapping[str, Any]]] = []
    for item in present:
        if alternatives and str(item.get("connector") or "AND").upper() == "OR":
            alternatives[-1].append(item)
        else:
            alternatives.append([item])
    if any(len(either) > 1 for either in alternatives) and len(alternatives) > 1:
        raise _inexpressible("AND and OR mixed")
    return [_either(either) for either in alternatives]


def _tree(node: Mapping[str, Any], depth: int) -> list[str]:
    if depth > _MAX_DEPTH:
        raise InvalidArgument(f"the filter of a run set is nested more than {_MAX_DEPTH} deep")
    if node.get("disabled"):
        return []
    if node.get("filters") is None:
        return [_leaf(node)] if (node.get("key") or {}).get("name") else []
    branches = [branch for branch in node["filters"] if not branch.get("disabled")]
    if node.get("op") == "OR" and len(branches) > 1:
        leaves = [leaf for branch in branches for leaf in _only_leaf(branch)]
        if len(leaves) != len(branches):
            raise _inexpressible("OR between groups of conditions")
        return [_either(leaves)]
    return [term for branch in branches for term in _tree(branch, depth + 1)]


def _only_leaf(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The condition of a branch that has exactly one; else none."""
    for _ in range(_MAX_DEPTH):
        inner = node.get("filters")
        if inner is None:
            return [node] if (node.get("key") or {}).get("name") else []
        if len(inner) != 1:
            return []
        node = inner[0]
    return []


def _either(leaves: Sequence[Mapping[str, Any]]) -> str:
    """One of several values of one field, which is all of OR that our filters have."""
    if len(leaves) == 1:
        return _leaf(leaves[0])
    keys = {json.dumps(leaf.get("key"), sort_keys=True) for leaf in leaves}
    if len(keys) > 1:
        raise _inexpressible(f"OR between conditions on different fields: {' OR '.join(map(_leaf, leaves))}")
    if any(leaf.get("op") not in ("=", "==", "IN") for leaf in leaves):
        raise _inexpressible(f"OR between comparisons: {' OR '.join(map(_leaf, leaves))}")
    values: list[Any] = []
    for leaf in leaves:
        value = leaf.get("value")
        values += value if isinstance(value, list) else [value]
    return _leaf({"key": leaves[0]["key"], "op": "IN", "value": values})


def _leaf(leaf: Mapping[str, Any]) -> str:
    key = leaf.get("key") or {}
    section, name = str(key.get("section") or "run"), str(key.get("name") or "")
    operator, value = str(leaf.get("op") or "="), leaf.get("value")
    if section == "tags":
        return _tag_term(name, operator, value)
    if section == "run" and name in _LABELS:
        return _label_term(_LABELS[name], operator, value)
    if section == "run" and name in _COMPARED:
        return _compared_term(_COMPARED[name], operator, value)
    if section not in ("config", "summary", "run"):
        raise _inexpressible(f"conditions on {section}")
    return _value_term(_field("config" if section == "config" else "summary", name), operator, value)


def _tag_term(name: str, operator: str, value: object) -> str:
    if name == "tags" or isinstance(value, (str, list)):
        return _label_term("tag", operator, name if value in (None, "") else value)
    has_tag = (operator in ("=", "==")) == bool(value)
    return f"{'' if has_tag else '-'}tag:{_quoted(name)}"


def _label_term(label: str, operator: str, value: object) -> str:
    values = value if isinstance(value, list) else [value]
    if operator in _LISTS or operator in ("=", "==", "!="):
        negated = _LISTS.get(operator, operator == "!=")
        texts = ",".join(_quoted(str(each)) for each in values)
        return f"{'-' if negated else ''}{label}:{texts}"
    raise _inexpressible(f"{operator} on {label}")


def _compared_term(column: str, operator: str, value: object) -> str:
    if operator not in _OPERATORS or isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _inexpressible(f"{operator} on {column}")
    unit = "s" if column == "duration" and not isinstance(value, str) else ""
    return f"{column}{_OPERATORS[operator]}{value}{unit}"


def _value_term(field: str, operator: str, value: object) -> str:
    if operator in _LISTS:
        values = value if isinstance(value, list) else [value]
        return f"{'-' if _LISTS[operator] else ''}{field}:{','.join(_value(each) for each in values)}"
    if operator not in _OPERATORS:
        raise _inexpressible(f"{operator} on {field}")
    return f"{field}{_OPERATORS[operator]}{_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) and math.isfinite(value):
        return repr(value)
    if isinstance(value, str):
        looks_like_number = re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?|true|false", value)
        return json.dumps(value, ensure_ascii=False) if looks_like_number else _quoted(value)
    raise _inexpressible(f"the value {json.dumps(value)[:60]}")


def _field(section: str, name: str) -> str:
    name = name.removesuffix(".value") if section == "config" else name
    return f"{section}.{name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)}"


def _quoted(text: str) -> str:
    return (
        text
        if _PLAIN_TEXT.fullmatch(text) and not text.startswith("-")
        else json.dumps(text, ensure_ascii=False)
    )


def _inexpressible(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"the filter of a run set has {what}, which filters here cannot express; "
        "use conditions that all hold, and IN for several values of one field"
    )
