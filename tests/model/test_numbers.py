import math

import pytest

from runvitals.model.numbers import decimal, whole


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400", "-1", "11", "", "x", "１０x", "9" * 5000])
def test_what_is_no_number_within_bounds_is_none(text: str) -> None:
    assert decimal(text, 0.0, 10.0) is None
    assert whole(text, 10) is None


def test_numbers_within_bounds() -> None:
    assert [decimal(text, 0.0, 10.0) for text in ("0", "1.5", "1e1", " 7 ")] == [0.0, 1.5, 10.0, 7.0]
    assert [whole(text, 10) for text in ("0", b"7", "10")] == [0, 7, 10]
    assert whole("²", 10) is None
    assert not math.isnan(decimal("0", 0.0, 1.0) or 0.0)
