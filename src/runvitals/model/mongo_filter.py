"""Filters of runs in the language of MongoDB, as `wandb.Api().runs()` has them, as our own.

{"$and": [{"config.lr": {"$gt": 0.1}}, {"state": "finished"}, {"tags": {"$in": ["baseline"]}}]}
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final

from runvitals.base.regular_expressions import finder
from runvitals.model import json_values
from runvitals.model.filter import (
    AllOf,
    AnyOf,
    FieldComparison,
    FieldMatch,
    HasField,
    Label,
    Labelled,
    Predicate,
    TagCount,
    Term,
    TextPattern,
    Words,
)
from runvitals.model.mongo_fields import DURATIONS, TIMES, BadFilter, field_names, known_name
from runvitals.model.state import STATES

MAX_LENGTH: Final = 100_000
MAX_DEPTH: Final = 10
MAX_CONDITIONS: Final = 200
MAX_TEXTS: Final = 10_000
"""In one `$in` of names, tags and the like."""

NEVER: Final = Term(AnyOf(()))
_OWN_STATES: Final[Mapping[str, tuple[str, ...]]] = {state: (state,) for state in STATES}
_LABELS: Final[Mapping[str, Label]] = {
    "id": "id",
    "project": "project",
    "entity": "entity",
    "name": "id",
    "displayName": "name",
    "display_name": "name",
    "group": "group",
    "groupName": "group",
    "group_name": "group",
    "jobType": "job_type",
    "job_type": "job_type",
    "tags": "tag",
    "host": "host",
    "user": "user",
    "username": "user",
    "user.username": "user",
    "user.name": "user",
    "notes": "note",
    "description": "note",
    "state": "state",
    "sweep": "sweep",
    "sweepName": "sweep",
    "sweep_name": "sweep",
}
_COMPARED_LABELS: Final[Mapping[Label, str]] = {
    "id": "id",
    "name": "name",
    "group": "group",
    "job_type": "job_type",
}
_ALWAYS_THERE: Final = ("id", "name", "state")
_EMPTY_MEANS_NONE: Final = ("group", "job_type")
_COMPARISONS: Final[Mapping[str, str]] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_OPERATORS: Final = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $regex, $size, $not"
_MAX_SIZE: Final = 500
_JSON_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_IN_A_LIST: Final = rf'(?:{_JSON_TEXT}|[^",\[\]{{}}]+|[\[{{](?:{_JSON_TEXT}|[^"\[\]{{}}])*[\]}}])'
"""A value in a list of JSON, which may be a list or object of simple values."""
_PHRASE: Final = re.compile(r'"([^"]*)"')
_MAX_NUMBER_MS: Final = 2.0**53


def parse_filters(text: str | None, states: Mapping[str, tuple[str, ...]] = _OWN_STATES) -> tuple[Term, ...]:
    """Return the terms of a filter, which all hold.

    Args:
        text: JSON.
        states: our states, by the names that the filter has for them.

    Raises:
        BadFilter: it is not a filter, is too large, or names a field or operator that is not supported.

    Example:
        >>> len(parse_filters('{"state": "finished", "config.lr": {"$lt": 0.1}}'))
        2
    """
    if not text:
        return ()
    if len(text) > MAX_LENGTH:
        raise BadFilter(f"the filter has {len(text):,} characters; expected at most {MAX_LENGTH:,}")
    try:
        filters = json_values.decode(text)
    except ValueError as error:
        raise BadFilter(f"the filter is not JSON: {error}") from None
    try:
        return () if filters is None else _Translation(states).terms(filters, 0)
    except RecursionError:  # from a value that the message would show
        raise _too_deep() from None


def _too_deep() -> BadFilter:
    return BadFilter(f"the filter is nested too deeply; expected at most {MAX_DEPTH} levels")


class _Translation:
    """Translates one filter, and counts its conditions."""

    def __init__(self, states: Mapping[str, tuple[str, ...]]) -> None:
        self._states = states
        self._conditions = 0

    def terms(self, condition: Any, depth: int) -> tuple[Term, ...]:
        """Return the terms of an object of the filter."""
        if depth > MAX_DEPTH:
            raise _too_deep()
        if not isinstance(condition, dict):
            raise BadFilter(
                f"invalid condition {_excerpt(condition)}; expected an object such as {{'state': 'running'}}"
            )
        return tuple(self._term(name, value, depth) for name, value in condition.items())

    def _term(self, name: str, value: Any, depth: int) -> Term:
        if name == "$not":
            return Term(AllOf(self.terms(value, depth + 1)), negated=True)
        if name in ("$and", "$or", "$nor"):
            if not isinstance(value, list):
                raise BadFilter(f"invalid {name}: expected a list of conditions")
            parts = tuple(Term(AllOf(self.terms(part, depth + 1))) for part in value)
            return Term(AllOf(parts)) if name == "$and" else Term(AnyOf(parts), negated=name == "$nor")
        if name == "$text":
            return self._search(value)
        if name.startswith("$"):
            raise BadFilter(
                f"unknown operator {name[:60]!r}; expected $and, $or, $nor, $not, $text or a field"
            )
        return self._field(name, value, depth)

    def _search(self, value: Any) -> Term:
        """Return the term of `$text`: all phrases in quotes, or without any one of the words."""
        text = value.get("$search") if isinstance(value, dict) else None
        if not isinstance(text, str) or not text.strip('" '):
            raise BadFilter('invalid $text: expected an object such as {"$search": "resnet"}')
        phrases = [phrase for phrase in _PHRASE.findall(text) if phrase.strip()]
        texts = phrases or text.replace('"', " ").split()
        self._conditions += len(texts)
        if self._conditions > MAX_CONDITIONS:
            raise BadFilter(f"the filter has too many conditions; expected at most {MAX_CONDITIONS}")
        terms = tuple(Term(Words(phrase)) for phrase in texts)
        return Term(AllOf(terms) if phrases else AnyOf(terms))

    def _field(self, name: str, value: Any, depth: int) -> Term:
        if depth > MAX_DEPTH:
            raise _too_deep()
        if not isinstance(value, dict):
            return self._condition(name, "$eq", value)
        if not value:
            raise BadFilter(f"{name[:60]}: cannot be compared with an empty object")
        parts = []
        for operator, operand in value.items():
            if operator == "$not":
                parts.append(Term(AllOf((self._field(name, operand, depth + 1),)), negated=True))
            elif operator == "$regex":
                parts.append(
                    self._condition(name, operator, _expression(name, operand, value.get("$options")))
                )
            elif operator != "$options":
                parts.append(self._condition(name, operator, operand))
        return parts[0] if len(parts) == 1 else Term(AllOf(tuple(parts)))

    def _condition(self, name: str, operator: str, operand: Any) -> Term:
        self._conditions += 1
        if operator in ("$in", "$nin") and isinstance(operand, list) and name not in _LABELS:
            self._conditions += len(operand)
        if self._conditions > MAX_CONDITIONS:
            raise BadFilter(f"the filter has too many conditions; expected at most {MAX_CONDITIONS}")
        if name == "state":
            operator, operand = self._with_our_states(operator, operand)
        if operator in ("$ne", "$nin"):
            return _negate(_compare(name, "$eq" if operator == "$ne" else "$in", operand))
        if operator == "$exists":
            has_none = _compare(name, "$eq", None)
            return _negate(has_none) if operand else has_none
        return _compare(name, operator, operand)

    def _with_our_states(self, operator: str, operand: Any) -> tuple[str, Any]:
        if operator in ("$eq", "$ne") and isinstance(operand, str):
            operator, operand = "$in" if operator == "$eq" else "$nin", [operand]
        if operator not in ("$in", "$nin") or not isinstance(operand, list):
            return operator, operand
        names = [
            self._states.get(value.lower(), ()) if isinstance(value, str) else (value,) for value in operand
        ]
        return operator, [state for states in names for state in states]


def _negate(term: Term) -> Term:
    return Term(term.condition, not term.negated)


def _compare(name: str, operator: str, operand: Any) -> Term:
    """Return the term for one operator of `_OPERATORS`, without those that negate."""
    name = known_name(name)
    try:
        if name in _LABELS:
            return _label_term(name, operator, operand)
        if name in TIMES:
            return _number_term(name, TIMES[name], operator, operand, time_ms)
        if name in DURATIONS:
            return _number_term(name, "duration_ms", operator, operand, _seconds_ms)
        fields = field_names(name)
    except ValueError as error:
        raise (error if isinstance(error, BadFilter) else BadFilter(f"{name[:60]}: {error}")) from None
    if fields:
        return _field_term(name, fields, operator, operand)
    allowed = sorted({*_LABELS, *TIMES, *DURATIONS})
    raise BadFilter(
        f"unknown field {name[:60]!r}; expected one of {', '.join(allowed)}, config.… or summary_metrics.…"
    )


def _label_term(name: str, operator: str, operand: Any) -> Term:
    label = _LABELS[name]
    if operator == "$eq" and operand is None:
        if label in _ALWAYS_THERE:
            return NEVER
        if label in _EMPTY_MEANS_NONE:
            return Term(Labelled(label, (TextPattern(""),)))
        return Term(Labelled(label, (TextPattern("*", "glob"),)), negated=True)
    if operator in _COMPARISONS:
        if label not in _COMPARED_LABELS:
            raise BadFilter(f"{name}: {operator} is not supported; expected $eq, $ne, $in, $nin or $regex")
        return Term(
            FieldComparison(
                (Predicate(_COMPARED_LABELS[label], _COMPARISONS[operator], _text(name, operand)),)
            )
        )
    if operator == "$regex":
        return Term(Labelled(label, (TextPattern(operand, "regex"),)))
    if operator == "$size":
        if label != "tag":
            raise BadFilter(f"{name}: only tags and lists of the configuration or summary have a $size")
        return Term(TagCount(_size(name, operand)))
    if operator == "$all" and label == "tag":
        return Term(
            AllOf(
                tuple(Term(Labelled("tag", (TextPattern(tag),))) for tag in _texts(name, operator, operand))
            )
        )
    if operator == "$in":
        texts = _texts(
            name,
            operator,
            [value for value in operand if value is not None] if isinstance(operand, list) else operand,
        )
        term = _any_text(label, texts)
        return term if None not in operand else Term(AnyOf((term, _label_term(name, "$eq", None))))
    if operator == "$eq":
        return _any_text(label, [_text(name, operand)])
    raise BadFilter(f"{name}: unknown operator {operator[:60]!r}; expected one of {_OPERATORS}")


def _size(name: str, operand: Any) -> int:
    if isinstance(operand, bool) or not isinstance(operand, int) or not 0 <= operand <= _MAX_SIZE:
        raise BadFilter(f"{name[:60]}: invalid $size {_excerpt(operand)}; expected 0 to {_MAX_SIZE}")
    return operand


def _any_text(label: Label, texts: list[str]) -> Term:
    return Term(Labelled(label, tuple(map(TextPattern, texts)))) if texts else NEVER


def _texts(name: str, operator: str, operand: Any) -> list[str]:
    if not isinstance(operand, list):
        raise BadFilter(f"{name}: expected a list after {operator}")
    if len(operand) > MAX_TEXTS:
        raise BadFilter(f"{name}: {len(operand):,} values after {operator}; expected at most {MAX_TEXTS:,}")
    return [_text(name, value) for value in operand]


def _text(name: str, operand: Any) -> str:
    if not isinstance(operand, str):
        raise BadFilter(f"{name}: cannot be compared with {_excerpt(operand)}; expected a text")
    return operand


def _number_term(
    name: str, column: str, operator: str, operand: Any, converted: Callable[[Any], float]
) -> Term:
    if operator in _COMPARISONS:
        return Term(FieldComparison((Predicate(column, _COMPARISONS[operator], converted(operand)),)))
    if operator == "$in" and isinstance(operand, list):
        predicates = [Predicate(column, "=", converted(value)) for value in operand if value is not None]
        return Term(FieldComparison(tuple(predicates))) if predicates else NEVER
    if operator == "$eq":
        return (
            NEVER if operand is None else Term(FieldComparison((Predicate(column, "=", converted(operand)),)))
        )
    raise BadFilter(
        f"{name}: {operator[:60]} is not supported; expected $eq, $ne, $gt, $gte, $lt, $lte or $in"
    )


def time_ms(value: Any) -> float:
    """Return a time as clients write it: an ISO date or time, in UTC unless it says otherwise; or seconds."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise BadFilter(f"invalid time {value[:60]!r}; expected e.g. 2026-01-31T12:00:00Z") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return float((since.days * 86_400 + since.seconds) * 1000 + since.microseconds / 1000)
    return _seconds_ms(value)


def _seconds_ms(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadFilter(f"invalid value {_excerpt(value)}; expected a number of seconds")
    try:
        ms = float(value) * 1000
    except OverflowError:
        ms = math.inf
    if not abs(ms) < _MAX_NUMBER_MS:
        raise BadFilter(f"invalid number of seconds {_excerpt(value)}; it is too large")
    return ms


def _field_term(name: str, fields: list[str], operator: str, operand: Any) -> Term:
    if operator == "$eq" and operand is None:
        has_value = tuple(Term(HasField(field)) for field in fields)
        return _negate(has_value[0] if len(has_value) == 1 else Term(AnyOf(has_value)))
    if operator == "$regex":
        return Term(
            FieldComparison(tuple(FieldMatch(field, TextPattern(operand, "regex")) for field in fields))
        )
    if operator == "$size":
        count = _size(name, operand)
        values = rf"{_IN_A_LIST}(?:,{_IN_A_LIST}){{{count - 1}}}" if count else ""
        pattern = TextPattern(rf"^\[{values}\]$", "regex")
        return Term(FieldComparison(tuple(FieldMatch(field, pattern) for field in fields)))
    if operator == "$in":
        if not isinstance(operand, list):
            raise BadFilter(f"{name[:60]}: expected a list after $in")
        parts = tuple(_field_term(name, fields, "$eq", each) for each in operand)
        return Term(AnyOf(parts))
    if operator != "$eq" and operator not in _COMPARISONS:
        raise BadFilter(f"{name[:60]}: unknown operator {operator[:60]!r}; expected one of {_OPERATORS}")
    value = _value(name, operand)
    return Term(
        FieldComparison(tuple(Predicate(field, _COMPARISONS.get(operator, "="), value) for field in fields))
    )


def _value(name: str, operand: Any) -> float | str | bool:
    if isinstance(operand, list):
        return json.dumps(operand, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(operand, (int, float, str, bool)):
        raise BadFilter(
            f"{name[:60]}: cannot be compared with {_excerpt(operand)}; compare its fields: {name[:60]}.…"
        )
    return operand


def _expression(name: str, pattern: Any, options: Any) -> str:
    """Return a regular expression with its options in it."""
    text = _text(f"{name[:60]}: $regex", pattern)
    flags = _text(f"{name[:60]}: $options", options) if options is not None else ""
    if not set(flags) <= set("ims"):
        raise BadFilter(f"{name[:60]}: unknown $options {flags[:20]!r}; expected some of i, m and s")
    expression = f"(?{''.join(sorted(set(flags)))}){text}" if flags else text
    try:
        finder(expression)
    except ValueError as error:
        raise BadFilter(f"{name[:60]}: {error}") from None
    return expression


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
