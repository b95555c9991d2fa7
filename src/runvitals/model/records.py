"""Records with JSON payloads: their fields and allowed values, as `docs/concepts/journal.md` describes them.

A reader calls `decoded` once for each record, and may then rely on the types of all fields that are described
there. A field that is missing or null says nothing.
"""

from __future__ import annotations

from runvitals.model.limits import DEPTH, INT64, STEP, TIME_MS
from runvitals.model.names import mended_name
from runvitals.model.state import ENDED_STATES, is_ended
from runvitals.model.summary import is_state
from runvitals.model.values import Mending, is_time, mended_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Rule = tuple[str, Callable[[Any], bool]]  # what is allowed, in words, and whether a value is

START, SCHEMA, HISTORY, EVENT, LIFECYCLE, INFO = "start", "schema", "history", "event", "lifecycle", "info"
LOST = "records_lost"
"""The name of the event in which a writer says how many records it could not write."""
_NO_FAULTS: dict[str, int] = {}
_LONGEST_INTERVAL_S = 366 * 86_400.0
_MOST_SCHEMAS = 1 << 32
# A payload that is shorter need not be looked through for what is too long.
_SHORT_BYTES = 300


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -INT64 <= value < INT64


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= STEP


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_interval(value: Any) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LONGEST_INTERVAL_S
    )


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _are_removed(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in value.values()
    )


def _is_sources(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, dict) and all(isinstance(told, str) for told in one.values() if told is not None)
        for one in value.values()
    )


_TEXT: Rule = ("a text", _is_text)
_INTEGER: Rule = ("an integer of 64 bits", _is_integer)
_COUNT: Rule = ("a number of records, 0 to 2⁵³", _is_count)
_FLAG: Rule = ("true or false", _is_flag)
_TIME: Rule = ("a time in ms UTC, 1970 to 9998", is_time)
_INTERVAL: Rule = ("seconds, over 0 to a year", _is_interval)
_MAPPING: Rule = ("an object", _is_mapping)

_FIELDS: dict[str, dict[str, Rule]] = {
    START: {
        "t": _TIME,
        **dict.fromkeys(("writer", "run", "project", "host", "role", "boot_id"), _TEXT),
        **dict.fromkeys(
            ("format", "segment", "since_boot_ms", "pid", "rank", "local_rank", "world_size", "forked_from"),
            _INTEGER,
        ),
        "interval_s": _INTERVAL,
        "labels": _MAPPING,
    },
    HISTORY: {"t": _TIME, "data": _MAPPING},
    EVENT: {"t": _TIME, **dict.fromkeys(("name", "level", "text"), _TEXT)},
    LIFECYCLE: {
        "t": _TIME,
        **dict.fromkeys(("what", "role", "state", "writer"), _TEXT),
        **dict.fromkeys(("pid", "rank", "local_rank", "world_size", "exit_code", "signal"), _INTEGER),
        "out_of_memory": _FLAG,
        "since": _TIME,
    },
    INFO: {
        "t": _TIME,
        **dict.fromkeys(("run", "config", "summary", "machine", "settings", "metrics"), _MAPPING),
        "removed": ("an object of lists of names", _are_removed),
        "logged": ("an object of the objects values, times and counts", is_state),
        "sources": ("an object of objects of texts", _is_sources),
        "baselines": ("an object of numbers", _are_numbers),
    },
}
_NEEDED = {"attach": ("pid",), "finish": ("pid",), "exit": ("pid",), "gap": ("since",), "end": ("state",)}


def check(kind: str, value: Mapping[str, Any]) -> None:
    """Whether the fields of a record are what docs/concepts/journal.md says.

    Raises:
        ValueError: naming the field, what it is, and what is allowed.

    Example:
        >>> check(LIFECYCLE, {"t": 1760000000000, "what": "exit", "pid": "4711"})
        Traceback (most recent call last):
        ValueError: pid is '4711'; an integer of 64 bits is allowed
    """
    for name, (allowed, is_valid) in _FIELDS[kind].items():
        given = value.get(name)
        if given is not None and not is_valid(given):
            raise ValueError(f"{name} is {_shown(given)}; {allowed} is allowed")
    if kind == EVENT and value.get("name") == LOST:
        _check_field(value, "count", _COUNT)
        _check_field(value, "since", _TIME)
    elif kind == LIFECYCLE:
        _check_lifecycle(value)


def _check_field(value: Mapping[str, Any], name: str, rule: Rule) -> None:
    allowed, is_valid = rule
    given = value.get(name)
    if given is not None and not is_valid(given):
        raise ValueError(f"{name} is {_shown(given)}; {allowed} is allowed")


def _check_lifecycle(value: Mapping[str, Any]) -> None:
    what = value.get("what")
    for name in ("what", *_NEEDED.get(what, ())) if isinstance(what, str) else ("what",):
        if value.get(name) is None:
            raise ValueError(f"{name} is missing")
    if what == "end" and not is_ended(value["state"]):
        raise ValueError(f"state is {_shown(value['state'])}; {', '.join(ENDED_STATES)} are allowed")


def decoded(kind: str, value: object, payload: bytes | None = None) -> tuple[dict[str, Any], dict[str, int]]:
    """A record's object as every reader may take it, and what had to be mended in it, with how often.

    Args:
        payload: its JSON text, if at hand: short and simple ones need not be looked through.

    Raises:
        ValueError: it is no such record.
    """
    if not isinstance(value, dict):
        raise ValueError(f"an object is expected, not {_shown(value)}")
    simple = payload is not None and _is_simple(payload)
    if simple and kind == HISTORY and _is_plain_row(value):
        return value, _NO_FAULTS
    check(kind, value)
    value = _without_nulls(kind, value)
    if simple and kind != HISTORY:
        return value, _NO_FAULTS
    mending = Mending()
    if kind != HISTORY:
        return mending.value(value, DEPTH + 1), mending.faults
    step = value.get("step")
    mended = {**value, "step": mended_step(step), "data": mending.row(value.get("data") or {})}
    if mended["step"] != step:
        mending.fault(f"a step that is no number from -2⁵³ to 2⁵³: {_shown(step)}")
    return mended, mending.faults


def _without_nulls(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """A record without the described times, texts and objects that are null, so that readers have their
    defaults. Integers and flags stay: our writers say `"signal": null`.
    """
    nulls = [
        name
        for name, rule in _FIELDS[kind].items()
        if name in value and value[name] is None and rule not in (_INTEGER, _FLAG)
    ]
    return {name: one for name, one in value.items() if name not in nulls} if nulls else value


def _is_simple(payload: bytes) -> bool:
    """Whether a short look at a record's text tells that nothing is to be mended: no empty name, none that
    may be reserved, no escape, no list, and too short for whatever is too long.
    """
    return (
        len(payload) < _SHORT_BYTES
        and b'""' not in payload
        and b'"_' not in payload
        and b"\\u" not in payload
        and b"[" not in payload
    )


def _is_plain_row(value: dict[str, Any]) -> bool:
    """Whether a row of `log()` is as our own writers write it: there are many, so this is quick."""
    t, step = value.get("t"), value.get("step")
    return (
        type(t) is int
        and 0 <= t < TIME_MS
        and type(step) is int
        and -STEP <= step <= STEP
        and type(value.get("data")) is dict
    )


def schema(value: object) -> tuple[int, list[str]]:
    """(id, keys) of a SCHEMA record's object.

    Raises:
        ValueError: anything else than a whole number of 32 bits and a list of different texts.
    """
    if not isinstance(value, dict):
        raise ValueError(f"an object is expected, not {_shown(value)}")
    schema_id, keys = value.get("id"), value.get("keys")
    if not isinstance(schema_id, int) or isinstance(schema_id, bool) or not 0 <= schema_id < _MOST_SCHEMAS:
        raise ValueError(f"id is {_shown(schema_id)}; an unsigned integer of 32 bits is allowed")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"keys is {_shown(keys)}; a list of texts is allowed")
    mended = [mended_name(key) for key in keys]
    if len(set(mended)) != len(mended):
        raise ValueError("keys: one of them occurs twice")
    return schema_id, mended


def lost_records(event: Mapping[str, Any]) -> int:
    """How many records a `records_lost` event tells of: one at least."""
    count = event.get("count")
    return count if isinstance(count, int) and _is_count(count) and count else 1


def _shown(value: object) -> str:
    """A value for an error's text, however large or deep it is."""
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 64 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(value[:60])
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"
