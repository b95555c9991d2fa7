"""Writes expressions as PromQL, as Prometheus' `format_query` does on one line."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Final

from runvitals.server.doors.promql import syntax
from runvitals.server.doors.promql.parser import PRECEDENCE, UNARY
from runvitals.server.doors.promql.vectors import NAME

_UNITS: Final = (("y", 31_536_000_000), ("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000))
_SHORT_UNITS: Final = (("m", 60_000), ("s", 1000), ("ms", 1))
_ATOM: Final = 10
_EXPONENT: Final = 6
"""Numbers from 10 to this power on are written with an exponent, as Prometheus does."""


def text_of(node: syntax.Expression) -> str:
    """Return an expression as text.

    Example:
        >>> from runvitals.server.doors.promql.parser import parse
        >>> text_of(parse("sum(rate(a{b='c'}[90s]))by(le)*(1+2)"))
        'sum by (le) (rate(a{b="c"}[1m30s])) * (1 + 2)'
    """
    if isinstance(node, syntax.Number):
        return number_text(node.value)
    if isinstance(node, syntax.StringLiteral):
        return json.dumps(node.value, ensure_ascii=False)
    if isinstance(node, syntax.Selector):
        return _selector(node)
    if isinstance(node, syntax.Subquery):
        step = duration_text(node.step_ms) if node.step_ms else ""
        has_modifiers = isinstance(node.expression, syntax.Selector) and bool(_modifiers(node.expression))
        inner = _within(node.expression, _ATOM + has_modifiers)
        return f"{inner}[{duration_text(node.range_ms)}:{step}]{_modifiers(node)}"
    if isinstance(node, syntax.Call):
        return f"{node.function}({', '.join(map(text_of, node.arguments))})"
    if isinstance(node, syntax.Aggregation):
        return _aggregation(node)
    if isinstance(node, syntax.Negation):
        return f"-{_within(node.expression, UNARY + 1)}"
    return _binary(node)


def _selector(node: syntax.Selector) -> str:
    name_matchers = node.matchers[:1] if node.matchers and _is_name(node) else ()
    inner = ",".join(
        f"{matcher.label}{matcher.operator}{json.dumps(matcher.value, ensure_ascii=False)}"
        for matcher in node.matchers[len(name_matchers) :]
    )
    window = f"[{duration_text(node.range_ms)}]" if node.range_ms else ""
    name = name_matchers[0].value if name_matchers else ""
    return f"{name}{f'{{{inner}}}' if inner or not name else ''}{window}{_modifiers(node)}"


def _is_name(node: syntax.Selector) -> bool:
    first = node.matchers[0]
    plain = first.value.replace(":", "_")
    return first.label == NAME and first.operator == "=" and plain.isascii() and plain.isidentifier()


def _modifiers(node: syntax.Selector | syntax.Subquery) -> str:
    at = ""
    if node.at is not None:
        at = f" @ {node.at}()" if isinstance(node.at, str) else f" @ {node.at / 1000:.3f}"
    if not node.offset_ms:
        return at
    sign = "-" if node.offset_ms < 0 else ""
    return f"{at} offset {sign}{duration_text(abs(node.offset_ms))}"


def _aggregation(node: syntax.Aggregation) -> str:
    grouping = ""
    if node.labels or node.without:
        grouping = f" {'without' if node.without else 'by'} ({', '.join(node.labels)}) "
    arguments = [part for part in (node.parameter, node.expression) if part is not None]
    return f"{node.operator}{grouping}({', '.join(map(text_of, arguments))})"


def _binary(node: syntax.Binary) -> str:
    precedence = PRECEDENCE[node.operator]
    to_the_right = node.operator == "^"
    left = _within(node.left, precedence + to_the_right)
    lowest = 0 if isinstance(node.right, syntax.Number) else precedence + (not to_the_right)
    right = _within(node.right, lowest)
    modifier = " bool" if node.returns_bool else ""
    return f"{left} {node.operator}{modifier}{_matching(node.matching)} {right}"


def _matching(matching: syntax.Matching) -> str:
    if not matching.on and not matching.labels and not matching.side:
        return ""
    text = f" {'on' if matching.on else 'ignoring'} ({', '.join(matching.labels)})"
    return f"{text} group_{matching.side} ({', '.join(matching.include)})" if matching.side else text


def _within(node: syntax.Expression, lowest: int) -> str:
    """Return an expression, in parentheses if it binds less tightly than what it stands in."""
    binds = _ATOM
    if isinstance(node, syntax.Binary):
        binds = PRECEDENCE[node.operator]
    elif isinstance(node, syntax.Negation) or (isinstance(node, syntax.Number) and node.value < 0):
        binds = UNARY
    return text_of(node) if binds >= lowest else f"({text_of(node)})"


def number_text(value: float) -> str:
    """Return a number as PromQL writes it.

    Example:
        >>> number_text(5.0), number_text(float("-inf")), number_text(1.5e7)
        ('5', '-Inf', '1.5e+07')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    if number and not -4 <= number.adjusted() < _EXPONENT:
        mantissa, _, exponent = f"{number:e}".partition("e")
        return f"{mantissa}e{exponent[0]}{int(exponent[1:]):02}"
    return f"{number:f}"


def duration_text(ms: int) -> str:
    """Return a duration, with days only if it is whole days.

    Example:
        >>> duration_text(5_400_000), duration_text(86_400_000)
        ('1h30m', '1d')
    """
    if not ms:
        return "0s"
    for unit, length in _UNITS[:3]:
        if ms % length == 0:
            return f"{ms // length}{unit}"
    parts = []
    for unit, length in (*_UNITS[3:], *_SHORT_UNITS):
        count, ms = divmod(ms, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
