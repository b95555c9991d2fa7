"""Queries that would take very long, much memory, or fail inside the server, are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runvitals.base import deadline
from runvitals.server.doors.promql.evaluator import MAX_QUERY_POINTS, Evaluator
from runvitals.server.doors.promql.functions import label_join, label_replace
from runvitals.server.doors.promql.parser import parse
from runvitals.server.doors.promql.patterns import compile_pattern
from runvitals.server.doors.promql.range_functions import Windows, over_windows
from runvitals.server.doors.promql.syntax import QueryError
from runvitals.server.doors.promql.vectors import Range, VectorSeries

_LONG = "a" * 3000


@pytest.mark.parametrize(
    "pattern",
    [
        "a?" * 30 + "a" * 30,
        "(a|a)" * 30 + "b",
        "(.*|.*)" * 30 + "b",
        "(?:.*|b)(?:.*|b)",
        "(a|(b|c)*)",
        r"a\\?b?c?d?e",
        ".*a.*b.*c.*",
        "(a+)+b",
    ],
)
def test_patterns_that_may_take_exponential_time_are_refused(pattern: str) -> None:
    with pytest.raises(QueryError, match="not supported"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a.*|b.*|c.*|d.*|e.*", "e1"),
        ("(a.*|b.*|c.*|d.*|e.*)", "e1"),
        ("(?:node1|node2)-(.+)", "node2-x"),
        ("train-[0-9]+(-retry)?", "train-7"),
        ("(?i)GPU.*", "gpu0"),
        (r"a\?b\?c\?d\?e\*\+\(\|\)", "a?b?c?d?e*+(|)"),
        ("[*+?|()]{4}", "()|?"),
        (".*?a.*?b.*?", "xaxb"),
    ],
)
def test_patterns_with_few_repetitions_are_allowed(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).fullmatch(text)


@pytest.mark.parametrize(
    "query",
    [
        "+".join(["1"] * 5000),
        "x[" + "9" * 30 + "y]",
        "x[" + "9" * 5000 + "s]",
        "x[1e400]",
        "x offset 9999999999y",
        "0x" + "f" * 400,
        r'{a="\ud800"}',
        r'{project="\x00"}',
    ],
)
def test_queries_that_cannot_be_computed_are_refused(query: str) -> None:
    with pytest.raises(QueryError):
        parse(query)


def test_long_sums_are_evaluated() -> None:
    value: Any = Evaluator(_Series([]), np.array([0])).evaluate(parse("+".join(["1"] * 200)))
    assert value.values.tolist() == [200.0]


def test_labels_do_not_grow_without_bounds() -> None:
    vector = [VectorSeries((("a", _LONG),), np.zeros(1), np.ones(1, np.bool_))]
    with pytest.raises(QueryError, match="characters"):
        label_replace(vector, "b", "$1" * 3000, "a", "(.*)")
    with pytest.raises(QueryError, match="characters"):
        label_join(vector, "b", "", ("a",) * 48)


def test_a_digit_that_is_no_number_names_no_group() -> None:
    vector = [VectorSeries((("a", "x"),), np.zeros(1), np.ones(1, np.bool_))]
    assert dict(label_replace(vector, "b", "${²}$1", "a", "(.*)")[0].labels)["b"] == "${²}x"


class _Series:
    """A source with the same series for every selector."""

    def __init__(self, series: list[Range]) -> None:
        self._found = series

    def find(self, matchers: object, t0: int, t1: int) -> list[Range]:
        return self._found

    def read(self, selected: list[Range], t0: int, t1: int) -> list[Range]:
        return selected


def _source(series: list[Range]) -> Any:
    return _Series(series)


def test_the_points_of_all_selectors_of_a_query_are_limited() -> None:
    of_one = 3_000_000 // 11_000
    lines = [Range((("n", str(n)),), np.array([1]), np.array([1.0])) for n in range(of_one)]
    source = _source(lines)
    selectors = MAX_QUERY_POINTS // (of_one * 11_000) + 1
    evaluator = Evaluator(source, np.arange(11_000))
    with pytest.raises(QueryError, match="points"):
        evaluator.evaluate(parse(" + ".join(["sum(x)"] * selectors)))


def test_a_subquery_of_too_many_steps_is_refused() -> None:
    evaluator = Evaluator(_source([]), np.array([10**12]))
    with pytest.raises(QueryError, match="steps"):
        evaluator.evaluate(parse("sum_over_time(vector(1)[300y:1ms])"))


def test_the_points_of_subqueries_count_for_the_whole_query() -> None:
    lines = [Range((("n", str(n)),), np.array([1]), np.array([1.0])) for n in range(50)]
    evaluator = Evaluator(_source(lines), np.array([10**12]))
    of_one = "max_over_time(x[40000s:1s])"
    with pytest.raises(QueryError, match="the selectors of the query have more"):
        evaluator.evaluate(parse(" + ".join([f"sum({of_one})"] * 6)))


def test_too_many_different_values_are_not_counted() -> None:
    lines = [Range((("n", str(n)),), np.array([10**12]), np.array([float(n)])) for n in range(1001)]
    evaluator = Evaluator(_source(lines), np.array([10**12]))
    with pytest.raises(QueryError, match="different values"):
        evaluator.evaluate(parse("count_values('value', x)"))


def test_windows_with_many_samples_are_computed_until_the_deadline() -> None:
    count = 200_000
    samples = Range((), np.arange(count), np.ones(count))
    computed = 0

    def compute(t: Any, values: Any, parameter: float) -> float:
        nonlocal computed
        computed += 1
        while not deadline.has_passed():
            pass
        return 1.0

    ends = np.arange(count - 500, count)
    with pytest.raises(deadline.TooSlow), deadline.within(0.2):
        over_windows(samples, Windows(ends, 2 * count), compute, np.zeros(500))
    assert computed <= 1
