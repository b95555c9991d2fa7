"""The syntax of PromQL."""

from __future__ import annotations

import pytest

from runvitals.server.doors.promql.label_hash import xxh64
from runvitals.server.doors.promql.parser import parse
from runvitals.server.doors.promql.patterns import compile_pattern
from runvitals.server.doors.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Matcher,
    Matching,
    Negation,
    Number,
    QueryError,
    Selector,
    StringLiteral,
    Subquery,
)

UP = Selector((Matcher("__name__", "=", "up"),))


def test_selectors() -> None:
    assert parse("up") == UP
    assert parse("""up{job='a',run!="b", host=~`c.*`,}""") == Selector(
        (*UP.matchers, Matcher("job", "=", "a"), Matcher("run", "!=", "b"), Matcher("host", "=~", "c.*"))
    )
    assert parse("up[1h30m] offset -5s") == Selector(UP.matchers, 5_400_000, -5000)
    assert parse('{__name__="up"} # a comment') == UP


def test_subqueries_and_times() -> None:
    assert parse("up[5m:1m] offset 10s @ 1.5") == Subquery(UP, 300_000, 60_000, 10_000, 1500)
    assert parse("up[5m:]") == parse("up[5m :]") == Subquery(UP, 300_000)
    assert parse("up @ end() offset -1m") == Selector(UP.matchers, 0, -60_000, "end")
    rate = Call("rate", (Selector(UP.matchers, 60_000, at="start"),))
    assert parse("rate(up[1m] @ start())[1h:30s]") == Subquery(rate, 3_600_000, 30_000)


def test_precedence() -> None:
    operands, two, plain = Number(1.0), Number(2.0), Matching()
    power = Binary("^", two, Binary("^", two, operands, plain, False), plain, False)
    assert parse("2 ^ 2 ^ 1") == power
    assert parse("-up ^ 2") == Negation(Binary("^", UP, two, plain, False))
    assert parse("1 + 2 * 1 > bool 2") == Binary(
        ">", Binary("+", operands, Binary("*", two, operands, plain, False), plain, False), two, plain, True
    )
    assert parse("1 - 2 - 1") == Binary("-", Binary("-", operands, two, plain, False), operands, plain, False)


def test_aggregations_and_functions() -> None:
    by = Aggregation("sum", UP, None, ("job",), False)
    assert parse("sum by (job) (up)") == parse("sum(up) by (job)") == by
    assert parse("topk(2, up)") == Aggregation("topk", UP, Number(2.0), (), False)
    assert parse('f(up, "a\\"b")') == Call("f", (UP, StringLiteral('a"b')))


def test_matching() -> None:
    expression = parse("up * on(job) group_left(host) up")
    assert expression == Binary("*", UP, UP, Matching(("job",), True, "left", ("host",)), False)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "unexpected end of input"),
        ("up{", "unexpected end of input"),
        ("up{}} ", "unexpected '}'"),
        ("sum(", "unexpected end of input"),
        ("up;", "unexpected character: ';'"),
        ("{job=~'.*'}", "at least one non-empty matcher"),
        ("rate(up[5m])[5m]", "a subquery is [5m:1m]"),
        ("up[5m][5m:1m]", "got a range vector"),
        ("up[5m:0s]", "must be greater than 0"),
        ("sum(up) offset 5m", "offset must be preceded by a selector or subquery"),
        ("up @ 5 @ 6", "@ may not be set multiple times"),
        ("up @ now()", "expected a time in seconds, start() or end()"),
        ("limit_ratio(up)", "expected 2, got 1"),
        ("topk(up)", "expected 2, got 1"),
        ("1 + bool 2", "bool modifier"),
        ("(" * 100 + "1", "nested more than"),
        ("-" * 200 + "1", "nested more than"),
    ],
)
def test_errors_say_where_and_what(query: str, problem: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse(query)
    assert problem in str(raised.value)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|aa)*", ".*.*.*.*x", r"(a)\1", "(?=a)", "(", "a" * 6000])
def test_patterns_that_may_take_long_are_refused(pattern: str) -> None:
    with pytest.raises(QueryError):
        compile_pattern(pattern)
    assert compile_pattern("node-(1|2)|rack.*").fullmatch("rack-7")


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_of_labels_is_xxh64(text: bytes, hashed: int) -> None:
    assert xxh64(text) == hashed
