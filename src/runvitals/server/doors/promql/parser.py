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
    unquote,
)
from runvitals.server.doors.promql.syntax import (
    Aggregation,
    At,
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
    Subquery,
)

AGGREGATIONS: Final = frozenset(
    (
        *("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"),
        *("topk", "bottomk", "limitk", "limit_ratio", "quantile", "count_values"),
    )
)
WITH_PARAMETER: Final = frozenset(("topk", "bottomk", "limitk", "limit_ratio", "quantile", "count_values"))
COMPARISONS: Final = frozenset(("==", "!=", "<", ">", "<=", ">="))
SETS: Final = frozenset(("and", "or", "unless"))
PRECEDENCE: Final = {
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
UNARY: Final = 5
_MAX_DEPTH: Final = 60
_MAX_OPERATORS: Final = 200
"""Each is a level of the syntax tree: 1+1+1 is (1+1)+1."""
_MATCHERS: Final = ("=", "!=", "=~", "!~")


def parse(query: str) -> Expression:
    """Return the syntax tree of a query.

    Raises:
        QueryError: where it is wrong, or what is not supported.

    Example:
        >>> parse("rate(runvitals_network_sent_bytes_total[5m])").function
        'rate'
    """
    parser = _Parser(tokens(query))
    expression = parser.expression(0)
    parser.end()
    return expression


def parse_selector(text: str) -> Selector:
    """Return the series of a `match[]`.

    Raises:
        QueryError: not an instant selector.
    """
    selector = parse(text)
    if (
        not isinstance(selector, Selector)
        or selector.range_ms
        or selector.offset_ms
        or selector.at is not None
    ):
        raise QueryError(f"invalid match[] {text[:200]!r}; expected a selector such as up{{job='a'}}")
    return selector


class _Parser:
    def __init__(self, tokens: list[Lexeme]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0
        self._operators = 0

    @property
    def _next(self) -> Lexeme:
        return self._tokens[self._index]

    def _take(self) -> Lexeme:
        token = self._next
        self._index += 1
        return token

    def _accept(self, *texts: str) -> bool:
        if self._next.kind in ("symbol", "name") and self._next.text in texts:
            self._index += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._error(f"expected {text!r}")

    def _error(self, expected: str) -> QueryError:
        token = self._next
        token_text = "end of input" if token.kind == "end" else repr(token.text[:50])
        return QueryError(f"1:{token.at + 1}: parse error: unexpected {token_text}, {expected}")

    def end(self) -> None:
        if self._next.kind != "end":
            raise self._error("expected an operator or the end")

    def expression(self, lowest: int) -> Expression:
        """Return an expression of operators that bind at least this tightly."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise QueryError(f"the query is nested more than {_MAX_DEPTH} levels deep")
        left = self._unary()
        while (operator := self._operator()) is not None and PRECEDENCE[operator] >= lowest:
            self._take()
            self._operators += 1
            if self._operators > _MAX_OPERATORS:
                raise QueryError(f"the query has more than {_MAX_OPERATORS} operators")
            returns_bool = self._accept("bool")
            if returns_bool and operator not in COMPARISONS:
                raise QueryError("parse error: bool modifier can only be used on comparison operators")
            matching = self._matching()
            precedence = PRECEDENCE[operator]
            right = self.expression(precedence if operator == "^" else precedence + 1)
            left = Binary(operator, left, right, matching, returns_bool)
        self._depth -= 1
        return left

    def _operator(self) -> str | None:
        text = self._next.text.lower() if self._next.kind == "name" else self._next.text
        return text if self._next.kind in ("symbol", "name") and text in PRECEDENCE else None

    def _unary(self) -> Expression:
        if self._accept("-"):
            operand = self.expression(UNARY + 1)
            return Number(-operand.value) if isinstance(operand, Number) else Negation(operand)
        if self._accept("+"):
            return self.expression(UNARY + 1)
        return self._with_modifiers(self._primary())

    def _primary(self) -> Expression:
        token = self._next
        if token.kind == "number":
            return Number(number(self._take().text))
        if token.kind == "text":
            return StringLiteral(unquote(self._take()))
        if self._accept("("):
            expression = self.expression(0)
            self._expect(")")
            return expression
        if token.text == "{":
            return self._selector("")
        if token.kind == "name":
            return self._after_name(self._take())
        raise self._error("expected an expression")

    def _after_name(self, token: Lexeme) -> Expression:
        name, lower = token.text, token.text.lower()
        if lower in ("inf", "nan") and self._next.text != "{":
            return Number(float(lower))
        if self._next.text in ("(", "by", "without") and lower in AGGREGATIONS:
            return self._aggregation(lower)
        if self._next.text == "(":
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
        label = unquote(token) if token.kind == "text" else token.text
        if token.kind == "text" and self._next.text in (",", "}"):
            return Matcher("__name__", "=", label)
        operator = self._take().text
        if operator not in _MATCHERS or self._next.kind != "text":
            self._index -= operator not in _MATCHERS
            raise self._error("expected =, !=, =~ or !~ and a text")
        return Matcher(label, operator, unquote(self._take()))

    def _with_modifiers(self, expression: Expression) -> Expression:
        """Return an expression with what follows it: ranges, offsets, and the modifier `@`."""
        has_offset = False
        while self._next.text in ("[", "offset", "@"):
            if self._accept("["):
                expression, has_offset = self._with_range(expression), False
                continue
            modifier = self._take().text
            if not isinstance(expression, (Selector, Subquery)):
                raise QueryError(f"parse error: {modifier} must be preceded by a selector or subquery")
            if has_offset if modifier == "offset" else expression.at is not None:
                raise QueryError(f"parse error: {modifier} may not be set multiple times")
            if modifier == "offset":
                has_offset = True
                sign = -1 if self._accept("-") else 1
                expression = replace(expression, offset_ms=sign * self._duration())
            else:
                expression = replace(expression, at=self._time())
        return expression

    def _with_range(self, expression: Expression) -> Expression:
        """Return a selector with its range, or a subquery; the bracket has been read."""
        range_ms = self._longer_than_zero(self._duration())
        is_range = isinstance(expression, Subquery) or (
            isinstance(expression, Selector) and expression.range_ms > 0
        )
        if not self._next.text.startswith(":"):
            self._expect("]")
            if not isinstance(expression, Selector) or is_range:
                raise QueryError("parse error: ranges only allowed for selectors; a subquery is [5m:1m]")
            if expression.offset_ms or expression.at is not None:
                raise QueryError("parse error: no offset or @ modifiers allowed before range")
            return replace(expression, range_ms=range_ms)
        if is_range:
            raise QueryError("parse error: subquery is only allowed on instant vector, got a range vector")
        colon, step_ms = self._take().text, 0  # names begin with colons, so the step may be part of it
        if len(colon) > 1:
            step_ms = self._longer_than_zero(duration_ms(colon[1:]))
        elif self._next.text != "]":
            step_ms = self._longer_than_zero(self._duration())
        self._expect("]")
        return Subquery(expression, range_ms, step_ms)

    def _longer_than_zero(self, ms: int) -> int:
        if ms <= 0:
            raise QueryError("parse error: duration must be greater than 0")
        return ms

    def _time(self) -> At:
        """Parse what follows `@`: seconds since 1970, `start()` or `end()`."""
        for name in ("start", "end"):
            if self._accept(name):
                self._expect("(")
                self._expect(")")
                return "start" if name == "start" else "end"
        sign = -1 if self._accept("-") else 1
        if self._next.kind != "number":
            raise self._error("expected a time in seconds, start() or end()")
        return sign * checked_duration(number(self._take().text) * 1000)

    def _duration(self) -> int:
        token = self._take()
        if token.kind == "number":
            return checked_duration(number(token.text) * 1000)
        if token.kind != "duration":
            self._index -= 1
            raise self._error("expected a duration")
        return duration_ms(token.text)

    def _arguments(self) -> tuple[Expression, ...]:
        self._expect("(")
        arguments: list[Expression] = []
        while not self._accept(")"):
            arguments.append(self.expression(0))
            if self._next.text != ")":
                self._expect(",")
        return tuple(arguments)

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
        names = []
        while not self._accept(")"):
            if self._next.kind != "name":
                raise self._error("expected a label")
            names.append(self._take().text)
            if self._next.text != ")":
                self._expect(",")
        return tuple(names)

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
