"""Syntax trees as JSON, as Prometheus' `parse_query` returns them."""

from __future__ import annotations

from typing import Any, Final

from runvitals.server.doors.promql import syntax
from runvitals.server.doors.promql.parser import SETS
from runvitals.server.doors.promql.texts import number_text
from runvitals.server.doors.promql.vectors import NAME

_CARDS: Final = {"": "one-to-one", "left": "many-to-one", "right": "one-to-many"}


def tree_of(node: syntax.Expression) -> dict[str, Any]:
    """Return an expression as JSON.

    Example:
        >>> tree_of(syntax.Negation(syntax.Number(5)))
        {'type': 'unaryExpr', 'op': '-', 'expr': {'type': 'numberLiteral', 'val': '5'}}
    """
    if isinstance(node, syntax.Number):
        return {"type": "numberLiteral", "val": number_text(node.value)}
    if isinstance(node, syntax.StringLiteral):
        return {"type": "stringLiteral", "val": node.value}
    if isinstance(node, syntax.Negation):
        return {"type": "unaryExpr", "op": "-", "expr": tree_of(node.expression)}
    if isinstance(node, syntax.Selector):
        return _selector(node)
    if isinstance(node, syntax.Subquery):
        about = {"expr": tree_of(node.expression), "range": node.range_ms, "step": node.step_ms}
        return {"type": "subquery", **about, **_modifiers(node)}
    if isinstance(node, syntax.Call):
        function = {"name": node.function, "argTypes": [], "variadic": 0, "returnType": "vector"}
        return {"type": "call", "func": function, "args": [tree_of(part) for part in node.arguments]}
    if isinstance(node, syntax.Aggregation):
        parameter = None if node.parameter is None else tree_of(node.parameter)
        by = {"grouping": list(node.labels), "without": node.without}
        expression = tree_of(node.expression)
        return {"type": "aggregation", "op": node.operator, "expr": expression, "param": parameter, **by}
    return _binary(node)


def _selector(node: syntax.Selector) -> dict[str, Any]:
    name = next(
        (matcher.value for matcher in node.matchers if (matcher.label, matcher.operator) == (NAME, "=")), ""
    )
    matchers = [
        {"name": matcher.label, "value": matcher.value, "type": matcher.operator} for matcher in node.matchers
    ]
    about = {"name": name, "matchers": matchers, **_modifiers(node)}
    if node.range_ms:
        return {"type": "matrixSelector", **about, "range": node.range_ms}
    return {"type": "vectorSelector", **about}


def _modifiers(node: syntax.Selector | syntax.Subquery) -> dict[str, Any]:
    at = node.at
    timestamp, named = (None, at) if isinstance(at, str) else (at, None)
    return {"offset": node.offset_ms, "timestamp": timestamp, "startOrEnd": named}


def _binary(node: syntax.Binary) -> dict[str, Any]:
    matching = None
    if not (_is_scalar(node.left) or _is_scalar(node.right)):
        matching = _matching(node.matching, node.operator)
    sides = {"lhs": tree_of(node.left), "rhs": tree_of(node.right)}
    return {
        "type": "binaryExpr",
        "op": node.operator,
        **sides,
        "matching": matching,
        "bool": node.returns_bool,
    }


def _is_scalar(node: syntax.Expression) -> bool:
    if isinstance(node, syntax.Binary):
        return _is_scalar(node.left) and _is_scalar(node.right)
    if isinstance(node, syntax.Negation):
        return _is_scalar(node.expression)
    return isinstance(node, syntax.Number) or (
        isinstance(node, syntax.Call) and node.function in ("scalar", "time", "pi")
    )


def _matching(matching: syntax.Matching, operator: str) -> dict[str, Any]:
    card = "many-to-many" if operator in SETS else _CARDS[matching.side]
    labels = {"labels": list(matching.labels), "on": matching.on, "include": list(matching.include)}
    return {"card": card, **labels}
