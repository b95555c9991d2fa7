"""Filter expressions of one comparison."""

from __future__ import annotations

import pytest

from runvitals.model.filter import Predicate
from tests.processor_time import measured

LENGTH = 30_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" config.a=1 ", 1.0),
        ("config.a = 1.", 1.0),
        ("config.a = -.5e3", -500.0),
        ("config.a = 1.5.5", "1.5.5"),
        ("config.a = .", "."),
        ("config.a == two  words ", "two  words"),
        ("config.a = a=b", "a=b"),
        ("config.a = true", True),
    ],
)
def test_values_are_numbers_where_they_look_like_one(text: str, value: float | str | bool) -> None:
    assert Predicate.parse(text).value == value


@pytest.mark.parametrize("text", ["", "config.a", "config.a =", "= 1", "config.a = \n"])
def test_what_is_no_comparison_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="invalid filter expression"):
        Predicate.parse(text)


@pytest.mark.parametrize(
    "value",
    [
        "1" * LENGTH + "x",
        "1" * LENGTH + "." + "1" * LENGTH + "x",
        "1" + " " * LENGTH + "2",
        " " * LENGTH + "x" + " " * LENGTH,
    ],
    ids=["digits", "fraction", "blanks", "blanks around"],
)
def test_parsing_takes_linear_time(value: str) -> None:
    with measured() as cost:
        assert isinstance(Predicate.parse(f"config.a = {value}").value, str)
    assert cost.times < 25, "backtracking would take 250 times as long as a million additions, and more"
