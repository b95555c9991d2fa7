import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.limits import DEPTH, RECORD_BYTES, RECORD_VALUES, ROW_NAMES, STEP, TEXT_CHARACTERS
from runvitals.model.values import Sanitizer, is_time, valid_step
from tests.isolated import printed

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(scalars.filter(lambda v: v == v), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_sanitized_values_are_json_and_unchanged_by_sanitizing(value: Any) -> None:
    sanitized = Sanitizer().value(value)
    again = Sanitizer()
    assert json.dumps(again.value(sanitized)) == json.dumps(sanitized)
    assert not again.faults
    json.dumps(sanitized, ensure_ascii=False).encode("utf-8")


def test_a_valid_row_is_unchanged() -> None:
    sanitizer = Sanitizer()
    row = {"loss": 0.5, "epoch": 3, "text": "ü", "list": [1, None, True], "big": 2**1000}
    assert sanitizer.row(row) == row
    assert sanitizer.faults == {}


def test_the_valid_values_of_a_row_are_unchanged() -> None:
    sanitizer = Sanitizer()
    assert sanitizer.row({"": 1, "_step": 2, "n": 10**400, "loss": 0.5}) == {
        "(empty)": 1,
        "_step_": 2,
        "n": "(an integer of 1329 bits)",
        "loss": 0.5,
    }
    assert sum(sanitizer.faults.values()) == 3


def test_a_sanitized_name_never_replaces_another() -> None:
    sanitizer = Sanitizer()
    assert sanitizer.row({"": 1, "(empty)": 2}) == {"(empty)": 2}
    assert any("second value" in fault for fault in sanitizer.faults)


def test_what_exceeds_a_limit_is_cut_and_counted() -> None:
    sanitizer = Sanitizer()
    assert len(sanitizer.row({str(n): n for n in range(ROW_NAMES + 7)})) == ROW_NAMES
    assert sanitizer.faults[f"more than {ROW_NAMES} names in a row"] == 7
    assert len(Sanitizer().value([0] * (RECORD_VALUES + 9))) == RECORD_VALUES
    assert len(Sanitizer().value("x" * (TEXT_CHARACTERS + 9))) == TEXT_CHARACTERS


def test_the_size_of_a_record_is_limited() -> None:
    for much in ("x" * TEXT_CHARACTERS, "🐝" * TEXT_CHARACTERS, 2**1000):
        sanitizer = Sanitizer()
        text = json.dumps(sanitizer.value([much] * 50_000))
        assert len(text) < 3 * RECORD_BYTES
        assert sanitizer.faults[f"more than {RECORD_BYTES} bytes in a record"] > 0


def test_cycles_and_depths_end() -> None:
    cyclic: list[Any] = []
    cyclic.extend([cyclic, cyclic])
    text = json.dumps(Sanitizer().value(cyclic))
    assert "nested too deeply" in text or text.count("[") <= RECORD_VALUES + 1
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert json.dumps(Sanitizer().value(deep)).count("{") == DEPTH
    valid: dict[str, Any] = {}
    for _ in range(DEPTH - 1):
        valid = {"a": valid}
    sanitizer = Sanitizer()
    assert sanitizer.value(valid) == valid
    assert not sanitizer.faults


def test_values_that_json_does_not_know_are_converted_by_the_caller() -> None:
    assert Sanitizer(lambda value: ["of", value.__class__.__name__]).value({"x": {1}}) == {"x": ["of", "set"]}
    assert Sanitizer().value({"x": object()}) == {"x": "(object)"}


def test_keys_that_are_not_strings() -> None:
    assert Sanitizer().value({None: 2, True: 3, (0, "a"): 4}) == {"true": 3, "null": 2, "(0, a)": 4}
    assert Sanitizer().value({2: 1, 0.5: 2}) == {"2": 1, "0.5": 2}


def test_steps() -> None:
    assert valid_step(STEP) == STEP
    assert valid_step(-1.5) == -1.5
    assert [valid_step(step) for step in (STEP + 1, 10**400, math.inf, math.nan, True, "1", None)] == [
        None
    ] * 7


def test_times() -> None:
    assert is_time(0)
    assert is_time(1.76e12)
    assert not any(map(is_time, (-1, 2**63, math.nan, math.inf, 10**400, True, "0", None)))


def test_importing_it_loads_no_package() -> None:
    loaded = printed("import runvitals.model.values; print(*sys.modules)").split()
    assert not {"re", "json", "typing", "collections"}.intersection(loaded)
