"""JSON as vendors' tools print it: after a warning or two, and with remarks behind it."""

from __future__ import annotations

from runvitals.collectors.plumbing.excerpt import first_lines
from runvitals.journal import json_codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Brackets in the remarks before the JSON, and blanks behind its first one.
MOST_STARTS, MOST_BLANKS = 200, 200


def find(output: bytes) -> Any:
    """The longest JSON object, or list of objects, in what a program printed: messages of its own may be
    objects as well.

    Bytes that are not UTF-8 become replacement characters: a broken product name costs no reading.

    Raises:
        ValueError: there is none, or it breaks off; with the beginning of what was printed.

    Example:
        >>> find(b'WARNING: [driver] is old\\n{"card0": {"GPU use (%)": "7"}}\\nDone.')
        {'card0': {'GPU use (%)': '7'}}
    """
    text = output.decode("utf-8", "replace")
    found: Any = None
    longest = end = 0
    for start in _starts(text):
        if start < end:
            continue  # in what was read
        try:
            value, end = json_codec.loads_at(text, start)
        except ValueError as error:
            if text[start + 1 : start + MOST_BLANKS].lstrip()[:1] not in ("{", "[", '"'):
                continue  # a bracket in a remark
            if longest:
                break
            # What follows must not be searched: in a text that breaks off, some inner object is whole, and
            # would be taken for all.
            raise ValueError(f"damaged JSON was printed: {error}: {first_lines(output)}") from None
        is_told = isinstance(value, dict) or (isinstance(value, list) and _objects(value))
        if is_told and end - start > longest:
            found, longest = value, end - start
    if longest:
        return found
    lines = first_lines(output)
    raise ValueError("nothing was printed" if lines == "nothing" else f"no JSON in what was printed: {lines}")


def _starts(text: str) -> Iterator[int]:
    """Where JSON may begin: each opening bracket, in order. What has more of them is no remark any more."""
    brace, bracket = text.find("{"), text.find("[")
    for _ in range(MOST_STARTS):
        if brace >= 0 and not 0 <= bracket < brace:
            yield brace
            brace = text.find("{", brace + 1)
        elif bracket >= 0:
            yield bracket
            bracket = text.find("[", bracket + 1)


def _objects(value: list[Any]) -> bool:
    return all(isinstance(each, dict) for each in value)
