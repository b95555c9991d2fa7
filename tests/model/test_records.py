from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal.json_codec import dumps, loads
from runvitals.model import records
from runvitals.model.limits import TIME_MS
from tests.model.hostile import kinds, objects

T = 1_760_000_000_000


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        (records.EVENT, {"t": T, "name": "records_lost", "count": float("inf")}, "count is inf"),
        (records.EVENT, {"t": T, "name": "records_lost", "count": "many"}, "count is 'many'"),
        (records.EVENT, {"t": float("nan")}, "t is nan"),
        (records.EVENT, {"t": TIME_MS}, "t is "),
        (records.EVENT, {"t": T, "level": 3}, "level is 3; a text is allowed"),
        (records.LIFECYCLE, {"t": T, "what": "exit"}, "pid is missing"),
        (records.LIFECYCLE, {"t": T, "what": "exit", "pid": 10**400}, "pid is an integer of 1329 bits"),
        (records.LIFECYCLE, {"t": T, "what": "end", "state": "happy"}, "state is 'happy'; finished"),
        (records.LIFECYCLE, {"t": T}, "what is missing"),
        (records.INFO, {"t": T, "config": [1]}, "config is a list; an object"),
        (records.INFO, {"t": T, "sources": {"cpu": "on"}}, "sources is an object; an object of objects"),
        (records.INFO, {"t": T, "baselines": {"cpu": float("nan")}}, "baselines is"),
        (records.START, {"t": T, "interval_s": 0}, "interval_s is 0; seconds"),
        (records.HISTORY, {"t": T, "data": [1]}, "data is a list"),
        (records.HISTORY, [], "an object is expected, not a list"),
    ],
)
def test_a_field_of_another_type_is_named(kind: str, value: Any, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        records.decoded(kind, value)


def test_a_described_field_that_is_null_is_as_one_that_is_missing() -> None:
    event = {"t": None, "name": "alert", "level": None, "text": None, "place": None}
    assert records.decoded(records.EVENT, event) == ({"name": "alert", "place": None}, {})
    for whole in (event, {"t": None}):
        kept, _ = records.decoded(records.EVENT, whole, dumps(whole))
        assert "t" not in kept
    end = {"t": T, "what": "exit", "pid": 1, "exit_code": 3, "signal": None, "out_of_memory": None}
    assert records.decoded(records.LIFECYCLE, end, dumps(end)) == (end, {})
    row, _ = records.decoded(records.HISTORY, {"t": None, "step": 1, "data": None})
    assert row == {"step": 1, "data": {}}


def test_a_row_is_mended_where_it_can_be() -> None:
    row = {"t": T, "step": 10**400, "data": {"": 1, "_step": 2, "loss": 0.5}}
    value, faults = records.decoded(records.HISTORY, row)
    assert value == {"t": T, "step": None, "data": {"(empty)": 1, "_step_": 2, "loss": 0.5}}
    assert len(faults) == 3


@pytest.mark.parametrize(
    "schema",
    [
        [],
        {"keys": ["a"]},
        {"id": "0", "keys": ["a"]},
        {"id": 1 << 32, "keys": ["a"]},
        {"id": True, "keys": []},
        {"id": 0, "keys": "a"},
        {"id": 0, "keys": [1]},
        {"id": 0, "keys": ["a", "a"]},
    ],
)
def test_a_schema_of_another_form_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"is allowed|is expected|occurs twice"):
        records.schema(schema)


def test_lost_records_are_one_at_least() -> None:
    assert [records.lost_records({"count": count}) for count in (7, 0, None, "x", 1e400, -3)] == [
        7,
        1,
        1,
        1,
        1,
        1,
    ]


@given(st.sampled_from(kinds), objects)
def test_what_is_decoded_is_valid_and_stays(kind: str, value: dict[str, Any]) -> None:
    text = dumps(value)
    try:
        found, faults = records.decoded(kind, loads(text), text)
    except ValueError:
        return
    again, no_faults = records.decoded(kind, found)
    assert not no_faults
    assert dumps(records.decoded(kind, again)[0]) == dumps(again)
    if not faults:
        said = {name: dumps(item) for name, item in value.items() if item is not None}
        assert {name: dumps(again[name]) for name in said} == said
