"""Records with JSON payloads: their fields and allowed values, as `docs/concepts/journal.md` describes them.

Readers call `decode` once for each record, and may then rely on the types of all fields described there. A
null field is the same as a missing one.
"""

from __future__ import annotations

from runvitals.model.limits import DEPTH, INT64, STEP, TIME_MS
from runvitals.model.media import are_items
from runvitals.model.names import sanitized_name
from runvitals.model.state import ENDED_STATES, is_ended
from runvitals.model.summary import is_summary_state
from runvitals.model.values import Sanitizer, is_time, valid_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Rule = tuple[str, Callable[[Any], bool]]  # what is expected, in words, and whether a value is valid

START, SCHEMA, HISTORY, EVENT, LIFECYCLE, INFO = "start", "schema", "history", "event", "lifecycle", "info"
MEDIA = "media"
LOST = "records_lost"
"""The name of the event with which a writer reports how many records it could not write."""
_NO_FAULTS: dict[str, int] = {}
_MAX_INTERVAL_S = 366 * 86_400.0
_MAX_SCHEMAS = 1 << 32
# A shorter payload cannot contain anything that is too long.
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
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MAX_INTERVAL_S


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
        isinstance(source, dict)
        and all(isinstance(text, str) for text in source.values() if text is not None)
        for source in value.values()
    )


_TEXT: Rule = ("a text", _is_text)
_INTEGER: Rule = ("a 64-bit integer", _is_integer)
_COUNT: Rule = ("a number of records, 0 to 2⁵³", _is_count)
_FLAG: Rule = ("true or false", _is_flag)
_TIME: Rule = ("a time in ms UTC, 1970 to 9998", is_time)
_INTERVAL: Rule = ("seconds, more than 0 and at most a year", _is_interval)
_MAPPING: Rule = ("an object", _is_mapping)

_FIELDS: dict[str, dict[str, Rule]] = {
    START: {
        "t": _TIME,
        **dict.fromkeys(("writer", "run", "project", "entity", "host", "role", "boot_id"), _TEXT),
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
        "logged": ("an object of the objects values, times and counts", is_summary_state),
        "sources": ("an object of objects of texts", _is_sources),
        "baselines": ("an object of numbers", _are_numbers),
    },
    MEDIA: {
        "t": _TIME,
        **dict.fromkeys(("key", "kind"), _TEXT),
        "items": ("a list of objects, each with a valid file or none", are_items),
    },
}
# Names of events in journals that were written before the monitor's texts were reworded.
_RENAMED_EVENTS = {"door_shut": "accept_failed", "not_inquired": "facts_failed"}
_REQUIRED = {"attach": ("pid",), "finish": ("pid",), "exit": ("pid",), "gap": ("since",), "end": ("state",)}


def check(kind: str, value: Mapping[str, Any]) -> None:
    """Check the types of the fields that docs/concepts/journal.md describes.

    Raises:
        ValueError: names the first invalid field, its value, and what is expected.

    Example:
        >>> check(LIFECYCLE, {"t": 1760000000000, "what": "exit", "pid": "4711"})
        Traceback (most recent call last):
        ValueError: invalid pid: expected a 64-bit integer, not '4711'
    """
    for name, rule in _FIELDS[kind].items():
        _check_field(value, name, rule)
    if kind == EVENT and value.get("name") == LOST:
        _check_field(value, "count", _COUNT)
        _check_field(value, "since", _TIME)
    elif kind == LIFECYCLE:
        _check_lifecycle(value)
    elif kind == MEDIA:
        for name in ("key", "kind"):
            if not value.get(name):
                raise ValueError(f"missing {name}")


def event_name(name: str) -> str:
    """Return the present name of an event, which old journals may record under another one.

    Example:
        >>> event_name("door_shut"), event_name("alert")
        ('accept_failed', 'alert')
    """
    return _RENAMED_EVENTS.get(name, name)


def _check_field(value: Mapping[str, Any], name: str, rule: Rule) -> None:
    expected, is_valid = rule
    field = value.get(name)
    if field is not None and not is_valid(field):
        raise ValueError(f"invalid {name}: expected {expected}, not {_describe(field)}")


def _check_lifecycle(value: Mapping[str, Any]) -> None:
    what = value.get("what")
    for name in ("what", *_REQUIRED.get(what, ())) if isinstance(what, str) else ("what",):
        if value.get(name) is None:
            raise ValueError(f"missing {name}")
    if what == "end" and not is_ended(value["state"]):
        raise ValueError(
            f"invalid state: expected one of {', '.join(ENDED_STATES)}, not {_describe(value['state'])}"
        )


def decode(kind: str, value: object, payload: bytes | None = None) -> tuple[dict[str, Any], dict[str, int]]:
    """A record's object, checked and sanitized, and what was invalid in it, with how often it occurred.

    Args:
        payload: its JSON text, if available. It saves inspecting short and simple records.

    Raises:
        ValueError: invalid record.
    """
    if not isinstance(value, dict):
        raise ValueError(f"invalid record: expected an object, not {_describe(value)}")
    simple = payload is not None and _is_simple(payload)
    if simple and kind == HISTORY and _is_plain_row(value):
        return value, _NO_FAULTS
    check(kind, value)
    value = _without_nulls(kind, value)
    if kind == EVENT and value.get("name") in _RENAMED_EVENTS:
        value = {**value, "name": event_name(value["name"])}
    if simple and kind not in (HISTORY, MEDIA):
        return value, _NO_FAULTS
    sanitizer = Sanitizer()
    if kind not in (HISTORY, MEDIA):
        return sanitizer.value(value, DEPTH + 1), sanitizer.faults
    step = value.get("step")
    if kind == MEDIA:
        media = sanitizer.value(value, DEPTH + 1)
        position = {"key": sanitized_name(value["key"]), "step": valid_step(step)}
        return {"items": [], **media, **position}, sanitizer.faults
    sanitized = {**value, "step": valid_step(step), "data": sanitizer.row(value.get("data") or {})}
    if sanitized["step"] != step:
        sanitizer.fault(f"a step that is not a number from -2⁵³ to 2⁵³: {_describe(step)}")
    return sanitized, sanitizer.faults


def _without_nulls(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """Drop the described times, texts and objects that are null, so that readers apply their defaults.

    Integers and flags are kept: our writers write `"signal": null`.
    """
    nulls = [
        name
        for name, rule in _FIELDS[kind].items()
        if name in value and value[name] is None and rule not in (_INTEGER, _FLAG)
    ]
    return {name: item for name, item in value.items() if name not in nulls} if nulls else value


def _is_simple(payload: bytes) -> bool:
    """Return whether a record's text shows that nothing needs to be sanitized.

    It has no empty or reserved name, no escape and no list, and is too short to contain anything that is too
    long.
    """
    return (
        len(payload) < _SHORT_BYTES
        and b'""' not in payload
        and b'"_' not in payload
        and b"\\u" not in payload
        and b"[" not in payload
    )


def _is_plain_row(value: dict[str, Any]) -> bool:
    """Return whether a row of `log()` has the form that our own writers write.

    Fast, because there are many.
    """
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
        ValueError: invalid id or keys, or a key that occurs twice.
    """
    if not isinstance(value, dict):
        raise ValueError(f"invalid schema: expected an object, not {_describe(value)}")
    schema_id, keys = value.get("id"), value.get("keys")
    if not isinstance(schema_id, int) or isinstance(schema_id, bool) or not 0 <= schema_id < _MAX_SCHEMAS:
        raise ValueError(f"invalid id: expected an unsigned 32-bit integer, not {_describe(schema_id)}")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"invalid keys: expected a list of strings, not {_describe(keys)}")
    sanitized = [sanitized_name(key) for key in keys]
    if len(set(sanitized)) != len(sanitized):
        raise ValueError("invalid keys: one of them occurs twice")
    return schema_id, sanitized


def lost_records(event: Mapping[str, Any]) -> int:
    """Return the number of records that a `records_lost` event reports: at least one."""
    count = event.get("count")
    return count if isinstance(count, int) and _is_count(count) and count else 1


def _describe(value: object) -> str:
    """Return a value in the text of an error, however large or deep it is."""
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 64 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(value[:60])
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"
