"""JSON without the `json` package, whose `re` and decoder would add 1.3 MB to the monitor: the same C code, called directly.

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
    make_encoder = None


class _ScannerContext:
    """What `_json.make_scanner` asks its caller for; the values are those of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf"))


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
    """`value` as compact ASCII JSON. What JSON cannot hold goes through `default`. 3 µs for a dozen numbers."""
    if make_encoder is None:
        import json

        return json.dumps(value, separators=(",", ":"), default=default).encode("ascii")
    encode = make_encoder(None, default, encode_basestring_ascii, None, ":", ",", False, False, True)
    return "".join(encode(value, 0)).encode("ascii")


def loads(text: bytes | str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: text that is not JSON, or has something after the value.
    """
    source = text.decode("utf-8") if isinstance(text, bytes) else text
    source = source.strip(" \t\r\n")
    if make_encoder is None:
        import json

        return json.loads(source)
    try:
        value, end = make_scanner(_ScannerContext)(source, 0)
    except StopIteration as stop:
        raise ValueError(f"not JSON at character {stop.value}: {source[:80]!r}") from None
    if end != len(source):
        raise ValueError(f"more text after the JSON value, at character {end}: {source[:80]!r}")
    return value
