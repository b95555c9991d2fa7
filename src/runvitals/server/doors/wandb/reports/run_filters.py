"""Filters, order and groups of run sets: those of W&B's reports as ours."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Final, TypeAlias

from runvitals.model.filter import AnyOf, FieldComparison, Labelled, Predicate, Term, Words
from runvitals.model.filter_text import MAX_TERMS, FilterError, parse
from runvitals.server.doors.wandb.executor import InvalidArgument

_Clauses: TypeAlias = "list[list[Mapping[str, Any]]]"
"""Of each clause, one condition must be true."""
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
_SENT_LABELS: Final = {label: name for name, label in _LABELS.items() if name != "user"}
_SENT_COLUMNS: Final = {"started_ms": "createdAt", "last_ms": "heartbeatAt", "duration_ms": "duration"}
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
        search: words of the search field, which hold as well, or what `run_filter` returned for it.

    Raises:
        InvalidArgument: the filter means something that our filters cannot say.

    Example:
        >>> leaf = {"key": {"section": "config", "name": "lr"}, "op": ">=", "value": 0.1}
        >>> filter_text({"op": "OR", "filters": [{"op": "AND", "filters": [leaf]}]}, "base")
        'base config.lr>=0.1'
    """
    terms = [search if _is_filter(search) else _quoted(search)] if search.strip() else []
    if filters:
        is_flat = filters.get("filterFormat") == "filterV2"
        clauses = _flat(filters.get("filters") or []) if is_flat else _tree(filters, 0)
        terms += [_either(clause) for clause in clauses]
    return " ".join(terms)


def run_filter(text: str) -> tuple[dict[str, Any], str]:
    """Return a filter of ours as `filterV2`, and as words of the search field if W&B cannot express it.

    Example:
        >>> run_filter("config.lr>=0.1")[0]["filters"]
        [{'key': {'section': 'config', 'name': 'lr'}, 'op': '>=', 'value': 0.1}]
        >>> run_filter("gpu.util<20")
        ({'filterFormat': 'filterV2', 'filters': []}, 'gpu.util<20')
    """
    try:
        terms = parse(text)
        sent = {"filterFormat": "filterV2", "filters": _items(terms)}
        if parse(filter_text(sent)) == terms:
            return sent, ""
    except (FilterError, InvalidArgument):
        pass  # W&B has no such filter
    return {"filterFormat": "filterV2", "filters": []}, text


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


def _items(terms: Sequence[Term]) -> list[dict[str, Any]]:
    """The members of `filterV2` for some terms; none if it cannot express one of them."""
    groups = []
    for term in terms:
        either = term.condition.terms if isinstance(term.condition, AnyOf) else (term,)
        leaves = [leaf for part in either if (leaf := _sent_leaf(part))]
        if len(leaves) < len(either):
            return []
        groups.append(_connected(leaves, "OR"))
    if len(groups) == 1:
        return groups[0]
    return _connected([group[0] if len(group) == 1 else {"filters": group} for group in groups], "AND")


def _connected(items: Sequence[dict[str, Any]], connector: str) -> list[dict[str, Any]]:
    return [{**item, "connector": connector} if index else item for index, item in enumerate(items)]


def _sent_leaf(term: Term) -> dict[str, Any] | None:
    condition = term.condition
    if isinstance(condition, Labelled):
        name = _SENT_LABELS.get(condition.label)
        exact = [pattern.text for pattern in condition.patterns if pattern.kind == "exact"]
        if name is None or len(exact) < len(condition.patterns):
            return None
        return _sent_equality({"section": "run", "name": name}, exact, term.negated)
    predicates = condition.alternatives if isinstance(condition, FieldComparison) else ()
    equal = [
        predicate
        for predicate in predicates
        if isinstance(predicate, Predicate) and predicate.operator == "="
    ]
    fields = set(term.fields)
    if len(fields) != 1:
        return None
    key = _sent_key(fields.pop())
    if len(equal) == len(predicates):
        return _sent_equality(key, [_sent_value(predicate) for predicate in equal], term.negated)
    first = predicates[0]
    if len(predicates) > 1 or term.negated or not isinstance(first, Predicate):
        return None
    return {"key": key, "op": first.operator, "value": _sent_value(first)}


def _sent_equality(key: dict[str, str], values: list[Any], negated: bool) -> dict[str, Any]:
    if negated:
        return {"key": key, "op": "NIN", "value": values}
    if len(values) == 1:
        return {"key": key, "op": "=", "value": values[0]}
    return {"key": key, "op": "IN", "value": values}


def _sent_key(field: str) -> dict[str, str]:
    section, dot, name = field.partition(".")
    if dot:
        return {"section": section, "name": name}
    return {"section": "run", "name": _SENT_COLUMNS.get(field, field)}


def _sent_value(predicate: Predicate) -> object:
    field, value = predicate.field, predicate.value
    if isinstance(value, (bool, str)):
        return value
    if field == "duration_ms":
        value /= 1000
    if field in ("started_ms", "last_ms"):
        return datetime.fromtimestamp(value / 1000, timezone.utc).isoformat()
    return int(value) if float(value).is_integer() else value


def _flat(items: Sequence[Mapping[str, Any]]) -> _Clauses:
    """The conditions of `filterV2`: a list whose members say how they are connected with the one before.

    AND binds more tightly than OR; members with `filters` are in parentheses.
    """
    alternatives: list[_Clauses] = []
    for item in items:
        nested = item.get("filters")
        clauses = _of_leaf(item) if nested is None else _flat(nested)
        if item.get("disabled") or not clauses:
            continue
        if not alternatives or str(item.get("connector") or "AND").upper() == "OR":
            alternatives.append([])
        alternatives[-1] += clauses
    return _any_of(alternatives)


def _tree(node: Mapping[str, Any], depth: int) -> _Clauses:
    if depth > _MAX_DEPTH:
        raise InvalidArgument(f"the filter of a run set is nested more than {_MAX_DEPTH} deep")
    if node.get("disabled"):
        return []
    if node.get("filters") is None:
        return _of_leaf(node)
    branches = [clauses for branch in node["filters"] if (clauses := _tree(branch, depth + 1))]
    return _any_of(branches) if node.get("op") == "OR" else [clause for each in branches for clause in each]


def _of_leaf(leaf: Mapping[str, Any]) -> _Clauses:
    return [[leaf]] if (leaf.get("key") or {}).get("name") else []


def _any_of(alternatives: Sequence[_Clauses]) -> _Clauses:
    """Combine alternatives, each of which is true if all its clauses are."""
    clauses: _Clauses = alternatives[0] if alternatives else []
    for other in alternatives[1:]:
        if len(clauses) * len(other) > MAX_TERMS:
            raise _inexpressible("too many combinations of AND and OR")
        clauses = [
            [*clause, *(leaf for leaf in other_clause if leaf not in clause)]
            for clause in clauses
            for other_clause in other
        ]
    return clauses


def _either(leaves: Sequence[Mapping[str, Any]]) -> str:
    """Return a term for each field, or one for several values of it, with `or` between them."""
    values: dict[str, list[Any]] = {}
    terms: dict[str, str] = {}
    for leaf in leaves:
        if leaf.get("op") not in ("=", "==", "IN"):
            terms.setdefault(json.dumps(leaf, sort_keys=True), _leaf(leaf))
            continue
        key, value = json.dumps(leaf.get("key"), sort_keys=True), leaf.get("value")
        of_key = values.setdefault(key, [])
        of_key += value if isinstance(value, list) else [value]
        terms[key] = _leaf({**leaf, "op": "IN", "value": of_key} if len(of_key) > 1 else leaf)
    return " or ".join(terms.values())


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


def _is_filter(search: str) -> bool:
    """Whether words of the search field are a filter that `run_filter` returned there."""
    try:
        terms = parse(search)
    except FilterError:
        return False
    return any(not isinstance(term.condition, Words) for term in terms)


def _inexpressible(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"the filter of a run set has {what}, which filters here cannot express; "
        "use conditions that all hold, and IN for several values of one field"
    )
