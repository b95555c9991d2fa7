"""The search language of MLflow: `metrics.loss < 0.1 AND params.model = 'resnet' AND tags.team LIKE 'vis%'`.

A filter is a list of comparisons that all hold. Runs and experiments are compared in Python; those
comparisons of runs that the database can make are also given to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from runvitals.server.doors.mlflow.errors import MlflowError, invalid

Value = float | int | str
EntityKind = Literal["metric", "parameter", "tag", "dataset", "attribute"]

MAX_FILTER: Final = 100_000
MAX_COMPARISONS: Final = 200
MAX_PATTERN: Final = 1000
MAX_ORDER: Final = 100
MAX_LISTED: Final = 10_000
_NUMBERS: Final = (">", ">=", "=", "!=", "<", "<=")
_TEXTS: Final = ("=", "!=", "LIKE", "ILIKE")
_NULLS: Final = ("IS NULL", "IS NOT NULL")
_LISTS: Final = ("IN", "NOT IN")
_PREFIXES: Final[Mapping[str, EntityKind]] = {
    "metric": "metric",
    "metrics": "metric",
    "param": "parameter",
    "params": "parameter",
    "parameter": "parameter",
    "parameters": "parameter",
    "tag": "tag",
    "tags": "tag",
    "dataset": "dataset",
    "datasets": "dataset",
    "attribute": "attribute",
    "attributes": "attribute",
    "attr": "attribute",
    "run": "attribute",
}
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<text>'(?:''|\\'|[^'])*'|"(?:""|\\"|[^"])*")
      | (?P<quoted>`[^`]*`)
      | (?P<operator>>=|<=|!=|<>|==|=|<|>)
      | (?P<mark>[(),])
      | (?P<word>[^\s'"`<>=!(),]+)
    )""",
    re.VERBOSE,
)
_AFTER_DOT: Final = re.compile(r"""(?P<quote>["'`])(?P<quoted>.+?)(?P=quote)|(?P<word>[^\s'"`<>=!(),]+)""")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition of a filter.

    Args:
        operator: in upper case; `IN` and `NOT IN` have a tuple as value, `IS NULL` has none.
    """

    kind: EntityKind
    key: str
    operator: str
    value: Value | tuple[str, ...] | None = None

    def holds(self, actual: Value | None) -> bool:
        """Return whether it holds for a value; None: there is none."""
        if self.operator == "IS NULL":
            return actual is None
        if self.operator == "IS NOT NULL":
            return actual is not None
        if actual is None:
            return False
        if isinstance(self.value, tuple):
            return (actual in self.value) == (self.operator == "IN")
        return _COMPARED[self.operator](actual, self.value)


@dataclass(frozen=True, slots=True)
class OrderBy:
    """One part of an order."""

    kind: EntityKind
    key: str
    ascending: bool = True


@dataclass(frozen=True, slots=True)
class Attributes:
    """The names of the attributes of runs or experiments.

    Args:
        texts, numbers: attribute → its aliases.
        listed: those that `IN` may be used with.
        prefixes: of `kind.key` that the filter may use.
        unordered: attributes that cannot be sorted by.
    """

    texts: Mapping[str, Sequence[str]]
    numbers: Mapping[str, Sequence[str]]
    kinds: tuple[EntityKind, ...]
    default: EntityKind = "attribute"

    def canonical(self, name: str) -> str | None:
        """Return the attribute that a name or alias means; None if it is unknown."""
        for canonical_name, aliases in (*self.texts.items(), *self.numbers.items()):
            if name == canonical_name or name in aliases:
                return canonical_name
        return None


RUN_ATTRIBUTES: Final = Attributes(
    texts={
        "run_id": ("run id", "runId"),
        "run_name": ("run name", "runName", "Run name", "Run Name"),
        "status": ("Status",),
        "user_id": ("user", "User", "User ID"),
        "artifact_uri": (),
    },
    numbers={
        "start_time": ("created", "Created", "date", "Date"),
        "end_time": (),
    },
    kinds=("metric", "parameter", "tag", "dataset", "attribute"),
)
_OF_DATASET: Final = ("name", "digest", "context")
EXPERIMENT_ATTRIBUTES: Final = Attributes(
    texts={"name": (), "experiment_id": ()},
    numbers={"creation_time": (), "last_update_time": ()},
    kinds=("attribute", "tag"),
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    end: int


def parse_filter(text: str | None, attributes: Attributes) -> list[Comparison]:
    """Return the comparisons of a filter, which all hold.

    Raises:
        MlflowError: 400, with what is wrong.

    Example:
        >>> parse_filter("metrics.loss < 0.5", RUN_ATTRIBUTES)
        [Comparison(kind='metric', key='loss', operator='<', value=0.5)]
    """
    if not text or not text.strip():
        return []
    if len(text) > MAX_FILTER:
        raise invalid(f"Invalid filter string: more than {MAX_FILTER} characters")
    return _Parser(text.strip().rstrip(";").rstrip(), attributes).comparisons()


class _Parser:
    def __init__(self, text: str, attributes: Attributes) -> None:
        self._text = text
        self._attributes = attributes
        self._at = 0

    def comparisons(self) -> list[Comparison]:
        comparisons = [self._comparison()]
        while (token := self._next()) is not None:
            if token.kind != "word" or token.text.upper() != "AND":
                raise self._error(f"Invalid clause(s) in filter string: {token.text[:60]!r}. Expected AND")
            comparisons.append(self._comparison())
            if len(comparisons) > MAX_COMPARISONS:
                raise self._error(f"more than {MAX_COMPARISONS} comparisons")
        return comparisons

    def _next(self) -> _Token | None:
        if self._at >= len(self._text):
            return None
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._error(f"it cannot be read from {self._text[self._at : self._at + 40]!r} on")
        self._at = match.end()
        assert match.lastgroup is not None
        return _Token(match.lastgroup, match[match.lastgroup], match.end())

    def _expect(self, *kinds: str) -> _Token:
        token = self._next()
        if token is None:
            raise self._error("Invalid comparison clause: it ends too early")
        if token.kind not in kinds:
            raise self._error(f"Invalid clause(s) in filter string: {token.text[:60]!r}")
        return token

    def _comparison(self) -> Comparison:
        kind, key = self._identifier()
        operator = self._operator()
        if operator in _NULLS:
            if kind not in ("tag", "parameter"):
                raise self._error(f"{operator} is only supported with tags and parameters")
            return Comparison(kind, key, operator)
        if operator in _LISTS:
            return self._list_comparison(kind, key, operator)
        token = self._expect("number", "text", "quoted", "word")
        if self._is_number(kind, key):
            self._check_operator(operator, _NUMBERS, kind, key)
            return Comparison(kind, key, operator, self._number(token, kind))
        self._check_operator(operator, _TEXTS, kind, key)
        value = self._string(token, kind, key)
        if operator in ("LIKE", "ILIKE") and len(value) > MAX_PATTERN:
            raise self._error(f"a pattern of {operator} has more than {MAX_PATTERN} characters")
        return Comparison(kind, key, operator, value)

    def _identifier(self) -> tuple[EntityKind, str]:
        token = self._expect("word", "quoted", "text")
        if token.kind != "word":
            if token.text.startswith("'"):
                raise self._error(f"Invalid comparison clause: {token.text[:60]}")
            return self._key("attribute", token.text[1:-1])
        head, dot, rest = token.text.partition(".")
        kind = _PREFIXES.get(head)
        if not dot:
            return self._key("attribute", token.text)
        if kind is None or kind not in self._attributes.kinds:
            valid = sorted({prefix for prefix, of in _PREFIXES.items() if of in self._attributes.kinds})
            raise invalid(f"Invalid entity type '{head[:60]}'. Valid values are {valid}")
        if not rest:
            match = _AFTER_DOT.match(self._text, self._at)
            if match is None:
                raise self._error(f"Invalid identifier '{token.text[:60]}'")
            self._at = match.end()
            rest = match["quoted"] or match["word"]
        return self._key(kind, rest)

    def _key(self, kind: EntityKind, key: str) -> tuple[EntityKind, str]:
        if kind == "dataset" and key not in _OF_DATASET:
            raise invalid(
                f"Invalid dataset key '{key[:60]}' specified. Valid keys are '{sorted(_OF_DATASET)}'"
            )
        if kind != "attribute":
            return kind, key
        attribute = self._attributes.canonical(key)
        if attribute is None:
            valid = sorted((*self._attributes.texts, *self._attributes.numbers))
            raise invalid(f"Invalid attribute key '{key[:60]}' specified. Valid keys are '{valid}'")
        return kind, attribute

    def _operator(self) -> str:
        token = self._expect("operator", "word")
        if token.kind == "operator":
            if token.text in ("==", "<>"):
                raise self._error(f"Invalid comparison operator '{token.text}'")
            return token.text
        word = token.text.upper()
        if word in ("LIKE", "ILIKE", "IN"):
            return word
        following = self._expect("word").text.upper()
        if word == "NOT" and following == "IN":
            return "NOT IN"
        if word == "IS" and following == "NULL":
            return "IS NULL"
        if word == "IS" and following == "NOT" and self._expect("word").text.upper() == "NULL":
            return "IS NOT NULL"
        raise self._error(f"Invalid comparison operator '{token.text[:60]}'")

    def _check_operator(self, operator: str, allowed: Sequence[str], kind: str, key: str) -> None:
        if operator not in allowed:
            raise invalid(f"{kind} comparator '{operator}' for '{key[:60]}' not one of '{sorted(allowed)}'")

    def _is_number(self, kind: EntityKind, key: str) -> bool:
        return kind == "metric" or (kind == "attribute" and key in self._attributes.numbers)

    def _number(self, token: _Token, kind: str) -> Value:
        if token.kind != "number":
            raise invalid(f"Expected numeric value type for {kind}. Found {token.text[:60]}")
        try:
            return int(token.text) if len(token.text) < 20 else float(token.text)
        except ValueError:
            return float(token.text)

    def _string(self, token: _Token, kind: str, key: str) -> str:
        if token.kind != "text":
            raise invalid(
                f"Expected a quoted string value for {kind} (e.g. 'my-value'). Got value {token.text[:60]}"
            )
        return token.text[1:-1]

    def _list_comparison(self, kind: EntityKind, key: str, operator: str) -> Comparison:
        is_text = kind == "dataset" or (kind == "attribute" and key not in self._attributes.numbers)
        if not is_text:
            raise invalid(f"Only string attributes can be compared with {operator}, not {kind} '{key[:60]}'")
        if self._expect("mark").text != "(":
            raise self._error(f"expected a list in parentheses after {operator}")
        values: list[str] = []
        while True:
            values.append(self._string(self._expect("text", "number", "word", "quoted"), kind, key))
            mark = self._expect("mark").text
            if mark == ")":
                return Comparison(kind, key, operator, tuple(values))
            if mark != "," or len(values) >= MAX_LISTED:
                raise self._error("expected ',' or ')' in a list")

    def _error(self, text: str) -> MlflowError:
        return invalid(f"Invalid filter string: {text}")


def parse_order(parts: Sequence[str], attributes: Attributes) -> list[OrderBy]:
    """Return an order, such as `metrics.loss DESC` or `start_time`, or raise MlflowError 400."""
    if len(parts) > MAX_ORDER:
        raise invalid(f"Invalid order_by: more than {MAX_ORDER} entries")
    return [_order_part(part, attributes) for part in parts]


def _order_part(part: str, attributes: Attributes) -> OrderBy:
    text, ascending = part.strip(), True
    words = text.rsplit(None, 1)
    if len(words) == 2 and words[1].upper() in ("ASC", "DESC"):
        text, ascending = words[0], words[1].upper() == "ASC"
    if not text or len(text) > 1000:
        raise invalid(f"Invalid order_by clause '{part[:60]}'.")
    head, dot, rest = text.partition(".")
    kind = _PREFIXES.get(head)
    if dot and kind is not None and kind in attributes.kinds and kind != "dataset":
        key = _unquote(rest)
        if key == rest and len(rest.replace(",", " ").split()) > 1:  # such as `metrics.loss ASCENDING`
            raise invalid(f"Invalid order_by clause '{part[:60]}'. Could not be parsed.")
    else:
        kind, key = "attribute", _unquote(text)
    if not key or any(letter in key for letter in '`"'):
        raise invalid(f"Invalid order_by clause '{part[:60]}'. Could not be parsed.")
    if kind == "attribute":
        attribute = attributes.canonical(key)
        if attribute is None:
            valid = sorted((*attributes.texts, *attributes.numbers))
            raise invalid(f"Invalid order_by entity '{key[:60]}'. Valid values are '{valid}'")
        key = attribute
    return OrderBy(kind, key, ascending)


def _unquote(name: str) -> str:
    """Return a name without the quotes around it, if it has some on both sides."""
    quoted = len(name) > 2 and name[0] in '`"' and name[-1] == name[0]
    return name[1:-1] if quoted else name


def like(pattern: str, text: str, *, ignores_case: bool) -> bool:
    """Return whether SQL's LIKE matches: `%` stands for any text, `_` for one character.

    Takes time linear in the length of the text; with `_`, at most times the length of the pattern.

    Example:
        >>> like("re_net%", "resnet50", ignores_case=False)
        True
    """
    if ignores_case:
        pattern, text = pattern.casefold(), text.casefold()
    first, *others = (_part(part) for part in pattern.split("%"))
    if not others:
        return first.fullmatch(text) is not None
    begin = first.match(text)
    if begin is None:
        return False
    at = begin.end()
    last = others.pop()
    for part in others:
        match = part.search(text, at)
        if match is None:
            return False
        at = match.end()
    width = len(pattern) - pattern.rindex("%") - 1
    return len(text) - width >= at and last.fullmatch(text, len(text) - width) is not None


def _part(part: str) -> re.Pattern[str]:
    return re.compile("".join("." if letter == "_" else re.escape(letter) for letter in part), re.DOTALL)


_COMPARED: Final[Mapping[str, Callable[[Value, object], bool]]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    "LIKE": lambda a, b: like(str(b), str(a), ignores_case=False),
    "ILIKE": lambda a, b: like(str(b), str(a), ignores_case=True),
}
