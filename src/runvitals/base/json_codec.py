"""JSON without the `json` package, whose import of `re` costs 1.3 MB: calls the same C code directly.

Non-finite floats are the bare tokens NaN, Infinity and -Infinity, as in Python's `json`.
"""

from __future__ import annotations

from runvitals.base.unicode import unicode_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:  # an interpreter without the C accelerator (PyPy)
    _HAS_C = False
else:
    _HAS_C = True


class _ScannerContext:
    """The attributes that `_json.make_scanner` reads, with the values of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # of "NaN", "Infinity", "-Infinity"


def plain(value: object) -> object:
    """Convert a value that JSON cannot represent.

    NumPy or PyTorch scalars and arrays become numbers and lists, sets and tuples become lists, anything else
    its text.

    Example:
        >>> plain(numpy.float32(0.5))
        0.5
    """
    for method in ("item", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert):
            try:
                converted: object = convert()
            except (ValueError, TypeError, RuntimeError):
                continue  # `.item()` of an array with more than one element; `.tolist()` is tried next
            if type(converted) is not type(value):
                return converted
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


def dumps(value: object, default: Callable[[Any], object] = plain) -> bytes:
    """Encode as compact ASCII JSON. 3 µs for a dozen numbers.

    Args:
        value: what to encode.
        default: converts values that JSON cannot represent.

    Raises:
        ValueError: the value is nested too deeply, or contains itself.
        TypeError: a dictionary key is not a string, number, boolean or None.
    """
    try:
        if not _HAS_C:
            import json

            return json.dumps(value, separators=(",", ":"), default=default).encode("ascii")
        encode = make_encoder(None, default, encode_basestring_ascii, None, ":", ",", False, False, True)
        return "".join(encode(value, 0)).encode("ascii")
    except RecursionError:
        raise ValueError("cannot encode as JSON: nested too deeply, or contains itself") from None


def loads(text: bytes | str) -> Any:
    """Decode a JSON text.

    Raises:
        ValueError: not UTF-8, not JSON, nested too deeply, or followed by more text.
    """
    source = text.decode("utf-8") if isinstance(text, bytes) else text
    source = source.strip(" \t\r\n")
    value, end = loads_at(source, 0)
    if end != len(source):
        raise ValueError(f"invalid JSON: more text after the value, at character {end}: {source[:80]!r}")
    return value


def loads_at(source: str, start: int) -> tuple[Any, int]:
    """Decode the JSON value that starts at character `start`. Returns it and the index of its end.

    Raises:
        ValueError: not JSON, or nested too deeply.
    """
    try:
        if not _HAS_C:
            import json

            return json.JSONDecoder().raw_decode(source, start)
        value, end = make_scanner(_ScannerContext)(source, start)  # type: ignore[arg-type]
    except SystemError:
        # The C code raises `json.decoder.JSONDecodeError`, and fails if that module is not imported.
        raise ValueError(f"invalid JSON from character {start} on: {source[start : start + 80]!r}") from None
    except StopIteration as stop:
        raise ValueError(f"invalid JSON at character {stop.value}: {source[start : start + 80]!r}") from None
    except RecursionError:
        raise ValueError("invalid JSON: nested too deeply") from None
    return value, end


def with_valid_text(value: Any) -> Any:
    r"""Return a JSON value in which the replacement character stands for each lone surrogate.

    Example:
        >>> with_valid_text({"text": "caf\udce9"})
        {'text': 'caf�'}
    """
    if isinstance(value, str):
        return unicode_text(value)
    if isinstance(value, list):
        return [with_valid_text(item) for item in value]
    if isinstance(value, dict):
        return {unicode_text(name): with_valid_text(item) for name, item in value.items()}
    return value
