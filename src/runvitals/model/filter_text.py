"""The grammar of filters, as users write them in the page, on the command line and in requests.

    state:failed,crashed gpu.util<20 config.lr>=1e-3 tag:baseline host:node3 -note:debug "two words"

A filter is a list of terms that all hold, separated by spaces. Of terms with `or` between them, one holds:
`tag:a or tag:b state:failed` are failed runs with one of the tags. A term is

* `word` or `"two words"`: a text that occurs in the run's id, name, group, job type, tags, notes or
  configuration values,
* `name:value` or `name:value,value`: one of the values of a label (`LABELS`) or field,
* `name<value`, with `=`, `!=`, `<`, `<=`, `>` or `>=`: a comparison with a number, text, time or duration.

`-` before a term negates it. A value that contains spaces or commas is quoted as in JSON. The web page has
the same grammar in TypeScript, for highlighting and completion only.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Final, NamedTuple, get_args

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.model.fields import SECTIONS
from runvitals.model.filter import (
    NUMBER_COLUMNS,
    OPERATORS,
    TEXT_COLUMNS,
    AnyOf,
    FieldComparison,
    FieldMatch,
    Label,
    Labelled,
    Predicate,
    Term,
    TextPattern,
    Words,
    is_field,
    literal,
)
from runvitals.model.run_verdict import FINDING_IDS, VERDICT_IDS, finding_field
from runvitals.model.state import STATES
from runvitals.model.system_statistics import SECTION, statistic_named

MAX_LENGTH: Final = 2000
MAX_TERMS: Final = 50
MAX_ALTERNATIVES: Final = 100
"""In all terms together."""
LABELS: Final[tuple[Label, ...]] = get_args(Label)
_OTHER_LABELS: Final[dict[str, Label]] = {"author": "user", "notes": "note", "run": "id", "tags": "tag"}
_SUBSTRINGS: Final = ("name", "note")
_IDS: Final = {"finding": FINDING_IDS, "verdict": VERDICT_IDS}
TIMES: Final = {"started": "started_ms", "last": "last_ms"}
DURATIONS: Final = {"duration": "duration_ms"}

_SPACE = re.compile(r"\s*")
_OR = re.compile(r"or(?!\S)", re.IGNORECASE)
_OR_AS_WORD = 'quote it to search for it: "or"'
_BARE_NAME = re.compile(r'(?:[^\s":=<>!]|!(?!=))+')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPERATOR = re.compile(r"\s*(==|!=|<=|>=|=|<|>)\s*")
_BARE_VALUE = re.compile(r'[^\s,"][^\s,]*')
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_MAX_NUMBER_MS = 2.0**53
_MAX_SHOWN = 60
_MAX_GLOB = 150


class FilterError(ValueError):
    """A filter text that cannot be understood. The message names the term and what is allowed."""


class _Value(NamedTuple):
    text: str
    quoted: bool


def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter text.

    Takes time proportional to the length of the text.

    Raises:
        FilterError: the text is not a filter.

    Example:
        >>> [term.negated for term in parse('state:failed -tag:debug "two words"')]
        [False, True, False]
    """
    if len(text) > MAX_LENGTH:
        raise FilterError(f"the filter has {len(text):,} characters; expected at most {MAX_LENGTH:,}")
    clauses: list[list[Term]] = []
    count = alternatives = 0
    is_alternative = False
    at = _skip_space(text, 0)
    while at < len(text):
        start = at
        is_or = _OR.match(text, at)
        if is_or is not None:
            if is_alternative or not clauses:
                raise FilterError(f"expected a term before {is_or[0]!r}; {_OR_AS_WORD}")
            is_alternative, at = True, _skip_space(text, is_or.end())
            continue
        try:
            term, at = _term(text, at)
        except ValueError as error:
            raise FilterError(f"{_excerpt(text, start)}: {error}") from None
        if is_alternative:
            clauses[-1].append(term)
        else:
            clauses.append([term])
        is_alternative = False
        count += 1
        alternatives += _number_of_alternatives(term)
        if count > MAX_TERMS or alternatives > MAX_ALTERNATIVES:
            raise FilterError(
                f"the filter is too long; expected at most {MAX_TERMS} terms and {MAX_ALTERNATIVES} values"
            )
        at = _skip_space(text, at)
    if is_alternative:
        raise FilterError(f"expected a term after 'or'; {_OR_AS_WORD}")
    return tuple(terms[0] if len(terms) == 1 else Term(AnyOf(tuple(terms))) for terms in clauses)


def _number_of_alternatives(term: Term) -> int:
    if isinstance(term.condition, Labelled):
        return len(term.condition.patterns)
    return len(term.condition.alternatives) if isinstance(term.condition, FieldComparison) else 1


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _excerpt(text: str, start: int) -> str:
    """Return the term that starts here, for an error: up to the next space."""
    term = text[start:].split(maxsplit=1)[0]
    return repr(term if len(term) <= _MAX_SHOWN else f"{term[:_MAX_SHOWN]}…")


def _term(text: str, at: int) -> tuple[Term, int]:
    negated = text[at] == "-"
    at += negated
    if at == len(text) or text[at].isspace():
        raise ValueError('expected a term after the "-"; quote it to search for it: "-"')
    if text[at] == '"':
        phrase, at = _read_quoted(text, at)
        _check_end(text, at)
        return _words(phrase, negated), at
    name, quoted, at = _name(text, at)
    if not name:
        raise ValueError(f"expected a word, or one of {_allowed_names()}, before {text[at]!r}")
    if text[at : at + 1] == ":":
        values, at = _values(text, at + 1, name)
        return _label_term(name, ":", values, negated), at
    operator = _OPERATOR.match(text, at)
    if operator is None:
        if quoted:
            raise ValueError("expected a space before the quoted text, or an operator after it")
        return _words(name, negated), at
    if text[operator.end() : operator.end() + 1] in ("<", ">", "="):
        raise ValueError(
            f"unknown operator {text[operator.start() : operator.end() + 1].strip()!r}; expected one of "
            f"{', '.join(OPERATORS)}, and quotes around a value that begins with one"
        )
    values, at = _values(text, operator.end(), name)
    return _label_term(name, "=" if operator[1] == "==" else operator[1], values, negated), at


def _name(text: str, at: int) -> tuple[str, bool, int]:
    """Return a name, parts of which may be quoted: `config."my key"`; and whether one is."""
    parts: list[str] = []
    any_quoted = False
    while True:
        bare = _BARE_NAME.match(text, at)
        if bare is not None:
            parts.append(bare[0])
            at = bare.end()
        elif parts and text[at : at + 1] == '"':
            part, at = _read_quoted(text, at)
            parts.append(part)
            any_quoted = True
        else:
            return "".join(parts), any_quoted, at


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    match = _QUOTED.match(text, at)
    if match is None:
        raise ValueError('the quoted text has no end; expected e.g. "two words"')
    try:
        value = json.loads(match[0], strict=False)
    except ValueError:
        raise ValueError(
            f'invalid quoted text; write " as \\" and \\ as \\\\: {match[0][:_MAX_SHOWN]}'
        ) from None
    assert isinstance(value, str)
    return value, match.end()


def _check_end(text: str, at: int) -> None:
    if at < len(text) and not text[at].isspace():
        raise ValueError(f"expected a space before {text[at]!r}")


def _values(text: str, at: int, name: str) -> tuple[list[_Value], int]:
    """Return the values after an operator, separated by commas."""
    values: list[_Value] = []
    while True:
        if text[at : at + 1] == '"':
            value, at = _read_quoted(text, at)
            values.append(_Value(value, quoted=True))
        else:
            bare = _BARE_VALUE.match(text, at)
            if bare is None:
                raise ValueError(f'expected a value of {name}; an empty one is written ""')
            values.append(_Value(bare[0], quoted=False))
            at = bare.end()
        if text[at : at + 1] != ",":
            _check_end(text, at)
            return values, at
        at += 1


def _words(text: str, negated: bool) -> Term:
    if not text.strip():
        raise ValueError("expected a text to search for")
    return Term(Words(text), negated)


def _label_term(name: str, operator: str, values: list[_Value], negated: bool) -> Term:
    label = _OTHER_LABELS.get(name, name)
    is_equality = operator in (":", "=", "!=")
    if label in LABELS and (is_equality or label not in TEXT_COLUMNS):
        if not is_equality:
            raise ValueError(f"{label} cannot be compared with {operator}; expected {label}:value")
        patterns = tuple(_pattern(label, operator, value) for value in values)
        return Term(Labelled(_label(label), patterns), negated != (operator == "!="))
    field = _field(label)
    if operator == ":":
        return Term(FieldComparison(tuple(_equal(field, name, value) for value in values)), negated)
    if len(values) > 1 and operator not in ("=", "!="):
        raise ValueError(f"expected one value after {operator}; several are alternatives of {name}:a,b")
    if operator == "!=" and len(values) > 1:  # it is none of them
        equal = FieldComparison(tuple(_comparison(field, name, "=", value) for value in values))
        return Term(equal, not negated)
    return Term(
        FieldComparison(tuple(_comparison(field, name, operator, value) for value in values)), negated
    )


def _label(name: str) -> Label:
    return next(label for label in LABELS if label == name)


def _pattern(label: str, operator: str, value: _Value) -> TextPattern:
    if label == "state" and value.text not in STATES:
        raise ValueError(f"unknown state {value.text!r}; expected one of {', '.join(STATES)}")
    ids = _IDS.get(label)
    if ids is not None and value.text not in ids and not _is_glob(value):
        raise ValueError(f"unknown {label} {value.text[:_MAX_SHOWN]!r}; expected one of {', '.join(ids)}")
    if _is_glob(value):
        return TextPattern(value.text, "glob")
    if label in _SUBSTRINGS and operator == ":":
        return TextPattern(value.text, "substring")
    return TextPattern(value.text)


def _is_glob(value: _Value) -> bool:
    if value.quoted or "*" not in value.text:
        return False
    if len(value.text) > _MAX_GLOB:
        raise ValueError(f"a value with * has at most {_MAX_GLOB} characters")
    return True


def _field(name: str) -> str:
    """Return the field of a comparison, by the name that a user wrote."""
    if name.startswith("cfg."):
        name = f"config.{name[len('cfg.') :]}"
    if name in TIMES or name in DURATIONS:
        return TIMES.get(name) or DURATIONS[name]
    if name in TEXT_COLUMNS or name in NUMBER_COLUMNS:
        return name
    field = finding_field(name) or statistic_named(name)
    if field is not None:
        return field
    if not is_field(name):
        raise ValueError(
            f"unknown name {name!r}; expected one of {_allowed_names()}; or quote it to search for it"
        )
    return name


def _allowed_names() -> str:
    sections = (*(f"{section}.…" for section in SECTIONS), f"{SECTION}.…")
    return ", ".join((*LABELS, *TIMES, *DURATIONS, "exit_code", "signal", "lost_hours", *sections))


def _equal(field: str, name: str, value: _Value) -> Predicate | FieldMatch:
    if is_field(field) and _is_glob(value):
        return FieldMatch(field, TextPattern(value.text, "glob"))
    return _comparison(field, name, "=", value)


def _comparison(field: str, name: str, operator: str, value: _Value) -> Predicate:
    assert operator in OPERATORS
    if name in TIMES:
        if operator in ("=", "!="):
            raise ValueError(f"{name} is a moment; expected <, <=, > or >=, e.g. {name}>=2026-11-01")
        return Predicate(field, operator, _time_ms(value.text))
    if name in DURATIONS:
        return Predicate(field, operator, _duration_ms(value.text))
    if value.quoted:
        return Predicate(field, operator, value.text)
    return Predicate(field, operator, literal(value.text))


def _duration_ms(text: str) -> float:
    """Milliseconds of a duration: `90s`, `2h`, `1d12h`."""
    total, at = 0.0, 0
    while at < len(text):
        part = _DURATION_PART.match(text, at)
        if part is None:
            break
        total += float(part[1]) * _UNITS_MS[part[2]]
        at = part.end()
    if not text or at < len(text) or total > _MAX_NUMBER_MS:
        raise ValueError(f"invalid duration {text[:_MAX_SHOWN]!r}; expected e.g. 90s, 45m, 2h or 1d12h")
    return total


def _time_ms(text: str) -> float:
    """Ms UTC of a date or time: `2026-11-01`, `2026-11-01T08:30`; without an offset, it is UTC."""
    try:
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        time_ms = moment.timestamp() * 1000
    except (ValueError, OverflowError):
        raise ValueError(
            f"invalid time {text[:_MAX_SHOWN]!r}; expected e.g. 2026-11-01 or 2026-11-01T08:30 (UTC)"
        ) from None
    return float(round(time_ms))
