"""JSON: encodes and decodes like the standard library's `json`."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.json_codec import dumps, loads, plain
from tests.isolated import printed

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(_json)
def test_any_json_survives(value: Any) -> None:
    assert loads(dumps(value)) == value
    assert loads(dumps(value).decode()) == value


@given(_json)
def test_the_encoding_is_that_of_the_standard_library(value: Any) -> None:
    assert dumps(value) == json.dumps(value, separators=(",", ":")).encode()
    assert (
        loads(
            json.dumps(value, ensure_ascii=False, indent=1)
            .encode("utf-8", "surrogatepass")
            .decode("utf-8", "surrogatepass")
        )
        == value
    )


def test_non_finite_numbers() -> None:
    assert dumps([math.nan, math.inf, -math.inf]) == b"[NaN,Infinity,-Infinity]"
    nan, *infinities = loads(b"[NaN,Infinity,-Infinity]")
    assert math.isnan(nan)
    assert infinities == [math.inf, -math.inf]
    assert math.copysign(1, loads(dumps(-0.0))) == -1


def test_numpy_values_become_plain_values() -> None:
    assert plain(numpy.float32(0.5)) == 0.5
    value = {
        "loss": numpy.float32(0.25),
        "step": numpy.int64(7),
        "histogram": numpy.arange(3),
        "scale": numpy.array(2.0),
    }
    assert loads(dumps(value)) == {"loss": 0.25, "step": 7, "histogram": [0, 1, 2], "scale": 2.0}


def test_other_values_become_lists_or_text() -> None:
    assert sorted(loads(dumps({3, 1}))) == [1, 3]
    assert loads(dumps({"device": range(2), "shape": (1, 2)})) == {"device": "range(0, 2)", "shape": [1, 2]}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[1,]", b'{"a":1}x', b"\xff\xfe", b'"a\nb"', b"[" * 100_000, b"nul"]
)
def test_invalid_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


def test_invalid_json_is_a_value_error_without_the_json_package() -> None:
    script = """
from runvitals.base.json_codec import loads
assert "json" not in sys.modules
for text in sys.argv[1:]:
    try:
        loads(text)
    except ValueError:
        print("rejected")
"""
    broken = ["{", "[1,", "[1 2]", '{"a"', '{"a":1', '"a', '"\\q"', '"\\ud8"', "nul", "-", '[{"a":1}, {']
    assert printed(script, *broken) == "rejected\n" * len(broken)


def test_a_value_that_contains_itself_is_a_value_error() -> None:
    config: dict[str, Any] = {}
    config["self"] = config
    with pytest.raises(ValueError, match="contains itself"):
        dumps(config)
