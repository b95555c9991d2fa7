import math

import pytest

from runvitals.base.numbers import parse_integer, parse_number


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400", "-1", "11", "", "x", "１０x", "9" * 5000])
def test_texts_that_are_no_number_within_the_bounds(text: str) -> None:
    assert parse_number(text, 0.0, 10.0) is None
    assert parse_integer(text, 10) is None


def test_numbers_within_the_bounds() -> None:
    assert [parse_number(text, 0.0, 10.0) for text in ("0", "1.5", "1e1", " 7 ")] == [0.0, 1.5, 10.0, 7.0]
    assert [parse_integer(text, 10) for text in ("0", b"7", "10")] == [0, 7, 10]
    assert parse_integer("²", 10) is None
    assert not math.isnan(parse_number("0", 0.0, 1.0) or 0.0)
