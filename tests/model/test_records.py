from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.json_codec import dumps, loads
from runvitals.model import records
from runvitals.model.limits import TIME_MS
from tests.model.hostile import kinds, objects

T = 1_760_000_000_000


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (
            records.EVENT,
            {"t": T, "name": "records_lost", "count": float("inf")},
            "invalid count: .* not inf",
        ),
        (records.EVENT, {"t": T, "name": "records_lost", "count": "many"}, "invalid count: .*, not 'many'"),
        (records.EVENT, {"t": float("nan")}, "invalid t: .*, not nan"),
        (records.EVENT, {"t": TIME_MS}, "invalid t: expected a time in ms UTC, 1970 to 9998, not "),
        (records.EVENT, {"t": T, "level": 3}, "invalid level: expected a text, not 3"),
        (records.LIFECYCLE, {"t": T, "what": "exit"}, "missing pid"),
        (records.LIFECYCLE, {"t": T, "what": "exit", "pid": 10**400}, "invalid pid: .*integer of 1329 bits"),
        (records.LIFECYCLE, {"t": T, "what": "end", "state": "happy"}, "one of finished, .*, not 'happy'"),
        (records.LIFECYCLE, {"t": T}, "missing what"),
        (records.INFO, {"t": T, "config": [1]}, "invalid config: expected an object, not a list"),
        (records.INFO, {"t": T, "sources": {"cpu": "on"}}, "invalid sources: expected an object of objects"),
        (records.INFO, {"t": T, "baselines": {"cpu": float("nan")}}, "invalid baselines: .*of numbers"),
        (records.START, {"t": T, "interval_s": 0}, "invalid interval_s: expected seconds.*, not 0"),
        (records.HISTORY, {"t": T, "data": [1]}, "invalid data: .*, not a list"),
        (records.HISTORY, [], "invalid record: expected an object, not a list"),
    ],
)
def test_an_error_names_the_invalid_field(kind: str, value: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        records.decode(kind, value)


def test_a_described_field_that_is_null_is_missing() -> None:
    event = {"t": None, "name": "alert", "level": None, "text": None, "place": None}
    assert records.decode(records.EVENT, event) == ({"name": "alert", "place": None}, {})
    for whole in (event, {"t": None}):
        kept, _ = records.decode(records.EVENT, whole, dumps(whole))
        assert "t" not in kept
    end = {"t": T, "what": "exit", "pid": 1, "exit_code": 3, "signal": None, "out_of_memory": None}
    assert records.decode(records.LIFECYCLE, end, dumps(end)) == (end, {})
    row, _ = records.decode(records.HISTORY, {"t": None, "step": 1, "data": None})
    assert row == {"step": 1, "data": {}}


def test_a_row_is_sanitized() -> None:
    row = {"t": T, "step": 10**400, "data": {"": 1, "_step": 2, "loss": 0.5}}
    value, faults = records.decode(records.HISTORY, row)
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
def test_an_invalid_schema_is_rejected(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|occurs twice"):
        records.schema(schema)


def test_at_least_one_record_is_lost() -> None:
    assert [records.lost_records({"count": count}) for count in (7, 0, None, "x", 1e400, -3)] == [
        7,
        1,
        1,
        1,
        1,
        1,
    ]


@given(st.sampled_from(kinds), objects)
def test_decoding_a_decoded_record_changes_nothing(kind: str, value: dict[str, Any]) -> None:
    text = dumps(value)
    try:
        value_once, faults = records.decode(kind, loads(text), text)
    except ValueError:
        return
    again, no_faults = records.decode(kind, value_once)
    assert not no_faults
    assert dumps(records.decode(kind, again)[0]) == dumps(again)
    if not faults:
        present = {name: dumps(item) for name, item in value.items() if item is not None}
        assert {name: dumps(again[name]) for name in present} == present
