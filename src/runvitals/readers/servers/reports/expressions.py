"""Expressions of metrics, as panels of the page have them: `gpu.0.powerWatts / gpu.0.gpu`.

The grammar is that of `web/src/features/workspace/panels/expression.ts`, see docs/guides/panels.md.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

Number = float | None
Evaluate = Callable[[Sequence[Number]], Number]
MAX_EXPRESSION: Final = 2000
_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.(?:\w+|\*(?!\w)))*")
_NUMBER: Final = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPED: Final = re.compile(r'\\(["\\])')
_SPACE: Final = re.compile(r"\s*")
_MAX_DEPTH: Final = 100
_OPERATORS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": math.pow,
}
_FUNCTIONS: Final[dict[str, tuple[range, Callable[..., float]]]] = {
    "abs": (range(1, 2), abs),
    "sqrt": (range(1, 2), math.sqrt),
    "exp": (range(1, 2), math.exp),
    "log": (range(1, 2), math.log),
    "log2": (range(1, 2), math.log2),
    "log10": (range(1, 2), math.log10),
    "min": (range(2, 9), min),
    "max": (range(2, 9), max),
}


class NamedMetric(NamedTuple):
    """A metric of an expression. `source`: None for whichever has it."""

    name: str
    source: str | None


class Expression(NamedTuple):
    """An expression.

    Attributes:
        metrics: each once, in the order in which it names them.
        is_plain: it is one metric and nothing else.
        value: its value for values of the metrics; None where it has none.
    """

    metrics: Sequence[NamedMetric]
    is_plain: bool
    value: Evaluate


def parse_expression(text: str) -> Expression:
    """Return the expression that a text is.

    Raises:
        ValueError: it is none; says where.

    Example:
        >>> half = parse_expression('"train/loss" / 2')
        >>> half.metrics[0].name, half.value([3.0])
        ('train/loss', 1.5)
    """
    if len(text) > MAX_EXPRESSION:
        raise ValueError(f"expected at most {MAX_EXPRESSION} characters")
    parser = _Parser(text)
    value = parser.whole()
    if not parser.metrics:
        raise ValueError(f"invalid expression {text!r}: expected at least one metric")
    return Expression(parser.metrics, parser.is_plain, value)


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self.metrics: list[NamedMetric] = []
        self.is_plain = True

    def whole(self) -> Evaluate:
        value = self._sum()
        if self._next():
            raise self._problem("an operator: + - * / ^")
        return value

    def _sum(self) -> Evaluate:
        value = self._product()
        while sign := self._take("+-"):
            value = self._apply(_OPERATORS[sign], value, self._product())
        return value

    def _product(self) -> Evaluate:
        value = self._sign()
        while sign := self._take("*/"):
            value = self._apply(_OPERATORS[sign], value, self._sign())
        return value

    def _sign(self) -> Evaluate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._problem(f"at most {_MAX_DEPTH} nested parts")
        if self._take("-"):
            value = self._apply(operator.neg, self._sign())
        else:
            value = self._atom()
            if self._take("^"):
                value = self._apply(math.pow, value, self._sign())
        self._depth -= 1
        return value

    def _atom(self) -> Evaluate:
        if self._take("("):
            return self._closed(self._sum())
        if number := self._match(_NUMBER):
            self.is_plain = False
            constant = float(number[0])
            return lambda _: constant
        if quoted := self._match(_QUOTED):
            return self._metric(quoted[1], None)
        name = self._match(_NAME)
        if name is None:
            raise self._problem("a metric, a number or (")
        if name[0] in ("logged", "system") and self._take(":"):
            quoted = self._match(_QUOTED)
            word = self._match(_NAME) if quoted is None else None
            if quoted is None and word is None:
                raise self._problem("the name of a metric")
            return self._metric(quoted[1] if quoted is not None else word[0] if word else "", name[0])
        if self._take("("):
            return self._call(name[0])
        return self._metric(name[0], None)

    def _call(self, name: str) -> Evaluate:
        if name not in _FUNCTIONS:
            raise self._problem(f"one of the functions {', '.join(_FUNCTIONS)}")
        counts, function = _FUNCTIONS[name]
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        if len(arguments) not in counts:
            raise self._problem(f"{counts[0]} to {counts[-1]} values of {name}")
        return self._closed(self._apply(function, *arguments))

    def _metric(self, name: str, source: str | None) -> Evaluate:
        metric = NamedMetric(_ESCAPED.sub(r"\1", name), source)
        if metric not in self.metrics:
            self.metrics.append(metric)
        index = self.metrics.index(metric)
        return lambda values: values[index]

    def _apply(self, function: Callable[..., float], *parts: Evaluate) -> Evaluate:
        self.is_plain = False

        def value(values: Sequence[Number]) -> Number:
            numbers = [part(values) for part in parts]
            if any(number is None for number in numbers):
                return None
            try:
                result = function(*numbers)
            except (ValueError, ArithmeticError):  # the root of a negative number, a division by zero
                return None
            return result if math.isfinite(result) else None

        return value

    def _closed(self, value: Evaluate) -> Evaluate:
        if not self._take(")"):
            raise self._problem(")")
        return value

    def _next(self) -> str:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, characters: str) -> str:
        character = self._next()
        if not character or character not in characters:
            return ""
        self._at += 1
        return character

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self._next()
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _problem(self, expected: str) -> ValueError:
        character = repr(self._next()) if self._next() else "the end"
        where = f"found {character} at character {self._at + 1}"
        return ValueError(f"invalid expression {self._text!r}: expected {expected}, {where}")
