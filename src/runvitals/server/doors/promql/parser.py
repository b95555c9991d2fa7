"""Parses PromQL.

https://prometheus.io/docs/prometheus/latest/querying/basics/
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from runvitals.server.doors.promql.lexer import (
    Lexeme,
    checked_duration,
    duration_ms,
    number,
    tokens,
    unquoted,
)
from runvitals.server.doors.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Matcher,
    Matching,
    Negation,
    Number,
    QueryError,
    Selector,
    StringLiteral,
)

AGGREGATIONS: Final = frozenset(
    ("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile")
)
WITH_PARAMETER: Final = frozenset(("topk", "bottomk", "quantile"))
_NOT_SUPPORTED: Final = frozenset(("count_values", "limitk", "limit_ratio"))
COMPARISONS: Final = frozenset(("==", "!=", "<", ">", "<=", ">="))
SETS: Final = frozenset(("and", "or", "unless"))
_PRECEDENCE: Final = {
    "or": 1,
    "and": 2,
    "unless": 2,
    **dict.fromkeys(COMPARISONS, 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
    "atan2": 5,
    "^": 6,
}
_UNARY: Final = 5
_MAX_DEPTH: Final = 60
_MAX_OPERATORS: Final = 200
"""Each is a level of the syntax tree: 1+1+1 is (1+1)+1."""
_MATCHERS: Final = ("=", "!=", "=~", "!~")


def parse(query: str) -> Expression:
    """The syntax tree of a query.

    Raises:
        QueryError: where it is wrong, or what is not supported.

    Example:
        >>> parse("rate(runvitals_network_sent_bytes_total[5m])").function
        'rate'
    """
    parser = _Parser(tokens(query))
    found = parser.expression(0)
    parser.end()
    return found


def parse_selector(text: str) -> Selector:
    """The series of a `match[]`.

    Raises:
        QueryError: not an instant selector.
    """
    found = parse(text)
    if not isinstance(found, Selector) or found.range_ms or found.offset_ms:
        raise QueryError(f"invalid match[] {text[:200]!r}; expected a selector such as up{{job='a'}}")
    return found


class _Parser:
    def __init__(self, found: list[Lexeme]) -> None:
        self._tokens = found
        self._place = 0
        self._depth = 0
        self._operators = 0

    @property
    def _next(self) -> Lexeme:
        return self._tokens[self._place]

    def _take(self) -> Lexeme:
        token = self._next
        self._place += 1
        return token

    def _accept(self, *texts: str) -> bool:
        if self._next.kind in ("symbol", "name") and self._next.text in texts:
            self._place += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error(f"expected {text!r}")

    def _error(self, expected: str) -> QueryError:
        token = self._next
        shown = "end of input" if token.kind == "end" else repr(token.text[:50])
        return QueryError(f"1:{token.at + 1}: parse error: unexpected {shown}, {expected}")

    def end(self) -> None:
        if self._next.kind != "end":
            raise self._error("expected an operator or the end")

    def expression(self, lowest: int) -> Expression:
        """An expression of operators that bind at least this tightly."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise QueryError(f"the query is nested more than {_MAX_DEPTH} levels deep")
        left = self._unary()
        while (operator := self._operator()) is not None and _PRECEDENCE[operator] >= lowest:
            self._take()
            self._operators += 1
            if self._operators > _MAX_OPERATORS:
                raise QueryError(f"the query has more than {_MAX_OPERATORS} operators")
            returns_bool = self._accept("bool")
            if returns_bool and operator not in COMPARISONS:
                raise QueryError("parse error: bool modifier can only be used on comparison operators")
            matching = self._matching()
            precedence = _PRECEDENCE[operator]
            right = self.expression(precedence if operator == "^" else precedence + 1)
            left = Binary(operator, left, right, matching, returns_bool)
        self._depth -= 1
        return left

    def _operator(self) -> str | None:
        text = self._next.text.lower() if self._next.kind == "name" else self._next.text
        return text if self._next.kind in ("symbol", "name") and text in _PRECEDENCE else None

    def _unary(self) -> Expression:
        if self._accept("-"):
            found = self.expression(_UNARY + 1)
            return Number(-found.value) if isinstance(found, Number) else Negation(found)
        if self._accept("+"):
            return self.expression(_UNARY + 1)
        return self._modified(self._primary())

    def _primary(self) -> Expression:
        token = self._next
        if token.kind == "number":
            return Number(number(self._take().text))
        if token.kind == "text":
            return StringLiteral(unquoted(self._take()))
        if self._accept("("):
            found = self.expression(0)
            self._expect(")")
            return found
        if token.text == "{":
            return self._selector("")
        if token.kind == "name":
            return self._named(self._take())
        raise self._error("expected an expression")

    def _named(self, token: Lexeme) -> Expression:
        name, lower = token.text, token.text.lower()
        if lower in ("inf", "nan") and self._next.text != "{":
            return Number(float(lower))
        if self._next.text in ("(", "by", "without") and lower in AGGREGATIONS:
            return self._aggregation(lower)
        if self._next.text == "(":
            if lower in _NOT_SUPPORTED:
                raise QueryError(f"the aggregation {lower!r} is not supported")
            return Call(name, self._arguments())
        return self._selector(name)

    def _selector(self, name: str) -> Selector:
        matchers = [Matcher("__name__", "=", name)] if name else []
        if self._accept("{"):
            while not self._accept("}"):
                matchers.append(self._matcher())
                if self._next.text != "}":
                    self._expect(",")
        if all(_matches_empty(matcher) for matcher in matchers):
            raise QueryError("parse error: vector selector must contain at least one non-empty matcher")
        return Selector(tuple(matchers))

    def _matcher(self) -> Matcher:
        if self._next.kind not in ("name", "text"):
            raise self._error("expected a label")
        token = self._take()
        label = unquoted(token) if token.kind == "text" else token.text
        if token.kind == "text" and self._next.text in (",", "}"):
            return Matcher("__name__", "=", label)
        operator = self._take().text
        if operator not in _MATCHERS or self._next.kind != "text":
            self._place -= operator not in _MATCHERS
            raise self._error("expected =, !=, =~ or !~ and a text")
        return Matcher(label, operator, unquoted(self._take()))

    def _modified(self, found: Expression) -> Expression:
        """The range and offset of a selector."""
        if self._accept("["):
            if not isinstance(found, Selector) or found.range_ms:
                raise QueryError("subqueries are not supported: only selectors may have a range")
            range_ms = self._duration()
            if self._next.text.startswith(":"):
                raise QueryError("subqueries are not supported")
            self._expect("]")
            found = replace(found, range_ms=range_ms)
        if self._accept("offset"):
            if not isinstance(found, Selector):
                raise QueryError("parse error: offset modifier must be preceded by a selector")
            sign = -1 if self._accept("-") else 1
            found = replace(found, offset_ms=sign * self._duration())
        if self._next.text == "@":
            raise QueryError("the modifier @ is not supported")
        return found

    def _duration(self) -> int:
        token = self._take()
        if token.kind == "number":
            return checked_duration(number(token.text) * 1000)
        if token.kind != "duration":
            self._place -= 1
            raise self._error("expected a duration")
        return duration_ms(token.text)

    def _arguments(self) -> tuple[Expression, ...]:
        self._expect("(")
        found: list[Expression] = []
        while not self._accept(")"):
            found.append(self.expression(0))
            if self._next.text != ")":
                self._expect(",")
        return tuple(found)

    def _aggregation(self, operator: str) -> Aggregation:
        grouping = self._grouping()
        arguments = self._arguments()
        grouping = grouping or self._grouping() or ((), False)
        expected = 2 if operator in WITH_PARAMETER else 1
        if len(arguments) != expected:
            raise QueryError(
                f"parse error: wrong number of arguments for aggregate expression provided, expected "
                f"{expected}, got {len(arguments)}"
            )
        parameter = arguments[0] if expected == 2 else None
        return Aggregation(operator, arguments[-1], parameter, *grouping)

    def _grouping(self) -> tuple[tuple[str, ...], bool] | None:
        if self._accept("by"):
            return self._labels(), False
        return (self._labels(), True) if self._accept("without") else None

    def _labels(self) -> tuple[str, ...]:
        self._expect("(")
        found = []
        while not self._accept(")"):
            if self._next.kind != "name":
                raise self._error("expected a label")
            found.append(self._take().text)
            if self._next.text != ")":
                self._expect(",")
        return tuple(found)

    def _matching(self) -> Matching:
        on = self._accept("on")
        if not on and not self._accept("ignoring"):
            return Matching()
        labels = self._labels()
        for side in ("left", "right"):
            if self._accept(f"group_{side}"):
                include = self._labels() if self._next.text == "(" else ()
                return Matching(labels, on, "left" if side == "left" else "right", include)
        return Matching(labels, on)


def _matches_empty(matcher: Matcher) -> bool:
    if matcher.operator == "=":
        return not matcher.value
    if matcher.operator == "=~":
        return matcher.value in ("", ".*")
    return bool(matcher.value)
