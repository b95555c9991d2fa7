"""Expressions of panels in exported reports mean what they mean on the page."""

from __future__ import annotations

import pytest

from runvitals.readers.servers.reports.expressions import parse_expression
from runvitals.readers.servers.reports.panel_lines import Points, combine


@pytest.mark.parametrize(
    ("text", "values", "value"),
    [
        ("loss", [3.0], 3.0),
        ('logged:"train/loss"', [3.0], 3.0),
        ("a + b * 2 - 1", [1.0, 2.0], 4.0),
        ("-a ^ 2", [3.0], -9.0),
        ("2 ^ -a", [1.0], 0.5),
        ("(a + a) / b", [1.0, 4.0], 0.5),
        ("max(a, b, 5) + min(a, b)", [1.0, 2.0], 6.0),
        ("log10(gpu.0.powerWatts)", [100.0], 2.0),
        ("sqrt(a)", [-1.0], None),
        ("a / b", [1.0, 0.0], None),
        ("exp(a)", [1000.0], None),
        ("a + b", [1.0, None], None),
    ],
)
def test_value(text: str, values: list[float | None], value: float | None) -> None:
    assert parse_expression(text).value(values) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a metric, a number or (, found the end at character 1"),
        ("a b", "expected an operator: + - * / ^, found 'b' at character 3"),
        ("(a", r"expected \), found the end"),
        ("nosuch(a)", "expected one of the functions abs, sqrt"),
        ("min(a)", "expected 2 to 8 values of min"),
        ("1 + 2", "expected at least one metric"),
        ("(" * 5000, "at most 2000 characters"),
        ("(" * 1000 + "a", "at most 100 nested parts"),
        ("-" * 1500 + "a", "at most 100 nested parts"),
    ],
)
def test_what_is_no_expression(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(,", r"\(,").replace("+ - * / ^", r"\+ - \* / \^")):
        parse_expression(text)


def test_the_metric_with_the_fewest_points_leads() -> None:
    often = Points([0, 1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0, 5.0])
    seldom = Points([1, 4, 100], [10.0, 20.0, 30.0])
    added = combine(parse_expression("a + b"), [often, seldom])
    assert list(added.x) == [1, 4, 100]
    assert list(added.y) == [12.0, 25.0, None]  # the last of the other is too long ago
