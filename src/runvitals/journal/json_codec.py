"""JSON without the `json` package, whose `re` costs 1.3 MB of memory: the same C code, called directly.

Non-finite floats are the bare tokens NaN, Infinity, -Infinity, as Python's own `json` writes and reads them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:  # an interpreter without the C accelerator (PyPy): memory is not its concern
    _HAS_C = False
else:
    _HAS_C = True


class _ScannerContext:
    """What `_json.make_scanner` asks its caller for; the values are those of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # of "NaN", "Infinity", "-Infinity"


def plain(value: object) -> object:
    """A value JSON can hold, for one it cannot: a scalar or list of NumPy, PyTorch …, else its text.

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
                continue  # `.item()` of an array with many elements: `.tolist()` is the way then
            if type(converted) is not type(value):
                return converted
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


def dumps(value: object, default: Callable[[Any], object] = plain) -> bytes:
    """`value` as compact ASCII JSON. What JSON cannot hold goes through `default`. 3 µs for a dozen numbers.

    Raises:
        ValueError: a value that is nested too deeply, or holds itself.
        TypeError: a dictionary with a key that is neither a text, a number, a truth value nor None.
    """
    try:
        if not _HAS_C:
            import json

            return json.dumps(value, separators=(",", ":"), default=default).encode("ascii")
        encode = make_encoder(None, default, encode_basestring_ascii, None, ":", ",", False, False, True)
        return "".join(encode(value, 0)).encode("ascii")
    except RecursionError:
        raise ValueError("a value that is nested too deeply, or holds itself, cannot become JSON") from None


def loads(text: bytes | str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: bytes that are not UTF-8, text that is not JSON, is nested too deeply, or goes on.
    """
    source = text.decode("utf-8") if isinstance(text, bytes) else text
    source = source.strip(" \t\r\n")
    value, end = loads_at(source, 0)
    if end != len(source):
        raise ValueError(f"more text after the JSON value, at character {end}: {source[:80]!r}")
    return value


def loads_at(source: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at a place of a text, and the place where it ends.

    Raises:
        ValueError: there is none, or it is nested too deeply.
    """
    try:
        if not _HAS_C:
            import json

            return json.JSONDecoder().raw_decode(source, start)
        value, end = make_scanner(_ScannerContext)(source, start)  # type: ignore[arg-type]
    except SystemError:
        # The C code takes its error from `json.decoder`, and fails over it where nobody has imported that.
        raise ValueError(f"not JSON from character {start} on: {source[start : start + 80]!r}") from None
    except StopIteration as stop:
        raise ValueError(f"not JSON at character {stop.value}: {source[start : start + 80]!r}") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    return value, end
