"""MLflow's search language: what is read, and what is refused."""

from __future__ import annotations

import random
import sqlite3
import string
from contextlib import closing

import pytest

from runvitals.server.doors.mlflow.errors import MlflowError
from runvitals.server.doors.mlflow.search_text import (
    EXPERIMENT_ATTRIBUTES,
    MAX_COMPARISONS,
    RUN_ATTRIBUTES,
    Comparison,
    OrderBy,
    like,
    parse_filter,
    parse_order,
)
from tests.processor_time import measured


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics.loss<0.5", Comparison("metric", "loss", "<", 0.5)),
        ("metric.`a b/c` >= -1e-3", Comparison("metric", "a b/c", ">=", -0.001)),
        ('metrics."x.y" != 2', Comparison("metric", "x.y", "!=", 2)),
        ("params.a.b = 'it is'", Comparison("parameter", "a.b", "=", "it is")),
        ("params.a = 'it''s'", Comparison("parameter", "a", "=", "it''s")),
        (r"params.a = 'it\'s'", Comparison("parameter", "a", "=", r"it\'s")),
        ("params.'it is' = 'so'", Comparison("parameter", "it is", "=", "so")),
        ("params.\"it's `so`\" = 'so'", Comparison("parameter", "it's `so`", "=", "so")),
        ('tags.mlflow.user like "a%"', Comparison("tag", "mlflow.user", "LIKE", "a%")),
        ("tag.k IS NOT NULL", Comparison("tag", "k", "IS NOT NULL")),
        ("parameters.k is null", Comparison("parameter", "k", "IS NULL")),
        ("status = 'RUNNING'", Comparison("attribute", "status", "=", "RUNNING")),
        ("attributes.created > 5", Comparison("attribute", "start_time", ">", 5)),
        ("run_id NOT IN ('a','b')", Comparison("attribute", "run_id", "NOT IN", ("a", "b"))),
        ("run.`Run name` ILIKE '%X_'", Comparison("attribute", "run_name", "ILIKE", "%X_")),
    ],
)
def test_comparisons(text: str, expected: Comparison) -> None:
    assert parse_filter(text, RUN_ATTRIBUTES) == [expected]
    assert parse_filter(f"  {text} AND {text} ", RUN_ATTRIBUTES) == [expected, expected]


@pytest.mark.parametrize("text", [None, "", "   "])
def test_no_filter(text: str | None) -> None:
    assert parse_filter(text, RUN_ATTRIBUTES) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics.loss", "ends too early"),
        ("metrics.loss <", "ends too early"),
        ("metrics.loss < 'a'", "Expected numeric value type for metric"),
        ("metrics.loss LIKE 'a'", "not one of"),
        ("metrics.loss = 1 OR metrics.loss = 2", "Expected AND"),
        ("metrics.loss = 1 AND", "ends too early"),
        ("params.lr > '0.1'", "not one of"),
        ("params.lr = 0.1", "Expected a quoted string value"),
        ("params.lr IN ('a')", "Only string attributes"),
        ("metrics.x IS NULL", "only supported with tags and parameters"),
        ("nothing.a = 'b'", "Invalid entity type"),
        ("datasets.size = 'mnist'", "Invalid dataset key 'size'"),
        ("dataset.name > 'mnist'", "dataset comparator '>'"),
        ("tags.a LIKE '" + "a" * 1001 + "'", "more than 1000"),
        ("attributes.nothing = 'b'", "Invalid attribute key"),
        ("'a' = 'a'", "Invalid comparison clause"),
        ("metrics.loss == 1", "Invalid comparison operator"),
        ("metrics.loss ~ 1", "Invalid"),
        ("run_id IN ()", "Invalid clause"),
        ("run_id IN ('a' 'b')", "Invalid clause"),
        ("run_id IN ('a'", "ends too early"),
        ("(metrics.a = 1)", "Invalid clause"),
        ("params.a = 'x", "cannot be read"),
        ("x" * 200_000, "more than"),
    ],
)
def test_wrong_filters(text: str, message: str) -> None:
    with pytest.raises(MlflowError) as raised:
        parse_filter(text, RUN_ATTRIBUTES)
    assert raised.value.code == "INVALID_PARAMETER_VALUE"
    assert message in raised.value.message


def test_too_many_comparisons() -> None:
    comparison = "metrics.a = 1"
    assert len(parse_filter(" AND ".join([comparison] * MAX_COMPARISONS), RUN_ATTRIBUTES)) == MAX_COMPARISONS
    with pytest.raises(MlflowError):
        parse_filter(" AND ".join([comparison] * (MAX_COMPARISONS + 1)), RUN_ATTRIBUTES)


def test_any_text_is_read_or_refused() -> None:
    chosen = random.Random(14)
    parts = [
        "metrics.",
        "params.",
        "a",
        "'",
        '"',
        "`",
        " ",
        "AND",
        "IN",
        "(",
        ")",
        "<",
        "=",
        "1e9",
        "é",
        "\0",
    ]
    for _ in range(3000):
        text = "".join(chosen.choice([*parts, chosen.choice(string.printable)]) for _ in range(12))
        try:
            for comparison in parse_filter(text, RUN_ATTRIBUTES):
                comparison.holds("a" if isinstance(comparison.value, str) else 1)
        except MlflowError as error:
            assert error.status == 400  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics.loss DESC", OrderBy("metric", "loss", ascending=False)),
        ("params.`a b` asc", OrderBy("parameter", "a b")),
        ("attributes.start_time", OrderBy("attribute", "start_time")),
        ("Created DESC", OrderBy("attribute", "start_time", ascending=False)),
        ("tags.a.b", OrderBy("tag", "a.b")),
    ],
)
def test_orders(text: str, expected: OrderBy) -> None:
    assert parse_order([text], RUN_ATTRIBUTES) == [expected]


@pytest.mark.parametrize(
    "text",
    ["", "DESC", "nothing", "metrics.", "metrics.`a", "metrics.a,metrics.b", "start_time DOWN", "x" * 2000],
)
def test_wrong_orders(text: str) -> None:
    with pytest.raises(MlflowError):
        parse_order([text], RUN_ATTRIBUTES)


def test_too_long_an_order() -> None:
    with pytest.raises(MlflowError, match="more than 100 entries"):
        parse_order(["start_time"] * 101, RUN_ATTRIBUTES)


def test_experiments_have_other_attributes() -> None:
    assert parse_filter("creation_time > 5", EXPERIMENT_ATTRIBUTES)[0].key == "creation_time"
    for text in ("metrics.a = 1", "status = 'RUNNING'"):
        with pytest.raises(MlflowError):
            parse_filter(text, EXPERIMENT_ATTRIBUTES)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%", "abc", True),
        ("%c", "abc", True),
        ("a_c", "abc", True),
        ("a_c", "abbc", False),
        ("", "", True),
        ("%", "", True),
        ("A%", "abc", False),
        ("%b%", "abc", True),
        ("a[b", "a[b", True),
        ("%a%a%a%a%b", "a" * 2000, False),
    ],
)
def test_like(pattern: str, text: str, matches: bool) -> None:
    assert like(pattern, text, ignores_case=False) is matches
    assert like(pattern.upper(), text, ignores_case=True) is (matches or pattern == "A%")


def test_like_is_that_of_sql() -> None:
    numbers = random.Random(7)
    with closing(sqlite3.connect(":memory:")) as database:
        for _ in range(2000):
            pattern = "".join(numbers.choices("ab%_", k=numbers.randint(0, 6)))
            text = "".join(numbers.choices("aB", k=numbers.randint(0, 6)))
            (expected,) = database.execute("SELECT ? LIKE ?", (text, pattern)).fetchone()
            assert like(pattern, text, ignores_case=True) is bool(expected), (pattern, text)


def test_like_takes_linear_time() -> None:
    assert not like("%" + "a" * 50_000 + "b", "a" * 100_000, ignores_case=False)  # else it takes many minutes


def test_missing_values() -> None:
    assert not Comparison("tag", "k", "!=", "a").holds(None)
    assert Comparison("tag", "k", "IS NULL").holds(None)
    assert not Comparison("metric", "k", "<", 1).holds(float("nan"))


def test_reading_a_number_takes_linear_time() -> None:
    with measured() as cost, pytest.raises(MlflowError):
        parse_filter(f"metrics.loss < {'1' * 30_000}x", RUN_ATTRIBUTES)
    assert cost.times < 25, "backtracking would take 250 times as long as a million additions, and more"
